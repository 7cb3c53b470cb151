"""Tests that are known to be unsteady, by name: `tests/quarantine.txt` says until when, and why.

Such a test runs as all others do. If it fails, the failure is printed at the end of the run, and the run passes. From
the day after its date on it counts as any other test. There are no second tries.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Final

import pytest

FILE: Final = Path(__file__).parents[2] / "quarantine.txt"
NAME: Final = pytest.StashKey["Entry"]()


@dataclass(frozen=True)
class Entry:
    """A test that may fail until the end of a day."""

    until: date
    test: str
    reason: str


def read(path: Path = FILE) -> dict[str, Entry]:
    """The entries by the test's name; a line that can't be read is an error that quotes it."""
    lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    entries = [entry_of(line) for line in lines if line and not line.startswith("#")]
    return {entry.test: entry for entry in entries}


def entry_of(line: str) -> Entry:
    try:
        until, test, reason = line.split(maxsplit=2)
        return Entry(date.fromisoformat(until), test, reason)
    except ValueError as error:
        raise pytest.UsageError(f"{FILE.name}: expected `YYYY-MM-DD test reason`, found {line!r}") from error


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    entries = read()
    for item in items:
        entry = entries.get(item.nodeid)
        if entry and date.today() <= entry.until:  # noqa: DTZ011 - the day where the tests run
            item.stash[NAME] = entry


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Make a failure of a test in quarantine an expected one that is reported."""
    report = yield
    entry = item.stash.get(NAME, None)
    if entry and report.failed:
        report.outcome = "skipped"
        report.wasxfail = f"in quarantine until {entry.until}: {entry.reason}"
        report.sections.append(("quarantine", f"{entry.test}\n{report.longreprtext}"))
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print each failure of a test in quarantine."""
    for report in terminalreporter.stats.get("xfailed", []):
        for title, text in report.sections:
            if title == "quarantine":
                terminalreporter.section("in quarantine, and failed: to be mended", red=True)
                terminalreporter.line(f"{report.wasxfail}\n{text}")
