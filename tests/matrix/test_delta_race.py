"""Delta's versions under races: what is reported is what the logs of the tables say, by both exact ways."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.kit.formats.delta_racer import QUICK, WRITERS, CommitReport, make_tables, race, wrongs
from tests.kit.spark.driver import DELTA, Driver, shared_driver_fixture

pytestmark = [pytest.mark.xdist_group("spark-delta"), pytest.mark.long, pytest.mark.needs("delta")]

ROUNDS, LONG_ROUNDS = 5, 40
SECONDS = 1800


driver = shared_driver_fixture(DELTA, **QUICK)


def test_writers_in_one_application(driver: Driver, tmp_path: Path) -> None:
    make_tables(driver, tmp_path)

    events = race(driver, tmp_path, "a", ROUNDS)

    assert len(events) == WRITERS * ROUNDS
    assert not wrongs(tmp_path, events)


@pytest.mark.long
@pytest.mark.timeout(SECONDS)
def test_two_applications(driver: Driver, java_home: Path, tmp_path: Path) -> None:
    make_tables(driver, tmp_path)
    with racer(java_home, tmp_path, "a") as one, racer(java_home, tmp_path, "b") as other:
        for each in (one, other):
            started(each)
        for each in (one, other):
            assert each.stdin
            each.stdin.write("go\n")
            each.stdin.flush()
        events = [line for each in (one, other) for line in reported_by(each)]

    assert len(events) == 2 * WRITERS * LONG_ROUNDS
    assert not wrongs(tmp_path, events)
    assert retried(tmp_path / "t"), "nobody was in anybody's way"


@contextmanager
def racer(java_home: Path, directory: Path, application: str) -> Generator[subprocess.Popen[str], None, None]:
    words = [str(java_home), str(directory), application, str(LONG_ROUNDS)]
    with subprocess.Popen(
        [sys.executable, "-m", "tests.kit.formats.delta_racer", *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def started(process: subprocess.Popen[str]) -> None:
    assert process.stdout
    assert any(line.strip() == "READY" for line in iter(process.stdout.readline, "")), "it never got ready"


def reported_by(process: subprocess.Popen[str]) -> list[CommitReport]:
    out, _ = process.communicate(timeout=SECONDS)
    return [reported_in(json.loads(line)) for line in out.splitlines() if line.startswith("{")]


def reported_in(line: dict[str, Any]) -> CommitReport:
    return CommitReport(
        line["who"], tuple(line["made"]), tuple(line["read"]), line["gaps"], tuple(line["transactions"])
    )


def retried(table: Path) -> int:
    """How many commits were made on another version than their transaction had read."""
    found = 0
    for file in (table / "_delta_log").glob("0*.json"):
        infos = [json.loads(line).get("commitInfo") for line in file.read_text().splitlines()]
        found += sum(info is not None and info.get("readVersion", -1) != int(file.stem) - 1 for info in infos)
    return found
