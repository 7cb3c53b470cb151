"""What all tests share: real servers for whoever asks for one by name, one seed, and no skips where none are allowed.

A server is started when the first test of a process asks, and serves that process until its end: a broker takes 3 s,
MariaDB 1 s, PostgreSQL half a second. Under xdist each worker has its own, so workers share nothing and none waits for
another.

Where the environment gives an address (HEADWATER_KAFKA …) every worker uses that one server: take names of topics,
groups and databases that are your own. Whoever kills or restarts a server starts one of his own
(`headwater.local.KafkaServer` …), because the shared one is everybody's.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.register_assert_rewrite("tests.kit")

from tests.kit import effort, seeds  # noqa: E402 - else their assertions say nothing

pytest_plugins = ["tests.kit.plugins.tiers", "tests.kit.plugins.quarantine", "tests.kit.plugins.forks"]

if TYPE_CHECKING:  # its import takes a while, and most tests need no server
    from headwater.local import Service


@pytest.fixture(scope="session")
def kafka() -> Iterator[Service]:
    """A broker; `kafka.address` is its bootstrap servers."""
    from headwater import local

    with local.kafka() as service:
        yield service


@pytest.fixture(scope="session")
def postgres() -> Iterator[Service]:
    """A PostgreSQL; `postgres.address` is the SQLAlchemy URL of an empty database, whose user may make others."""
    from headwater import local

    with local.postgres(durable=False) as service:
        yield service


@pytest.fixture(scope="session")
def mariadb() -> Iterator[Service]:
    """A MariaDB; `mariadb.address` is the SQLAlchemy URL of an empty database, whose user may make others."""
    from headwater import local

    with local.mariadb(durable=False) as service:
        yield service


@pytest.fixture(
    params=[
        "sqlite",
        pytest.param("postgres", marks=pytest.mark.database),
        pytest.param("mariadb", marks=[pytest.mark.database, pytest.mark.long]),
    ]
)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Where a lineage store can be, on each kind of database: there is nothing in it yet."""
    from tests.kit.stores import own_database

    if request.param == "sqlite":
        yield str(tmp_path / "store.db")
    else:
        with own_database(request.getfixturevalue(request.param)) as url:
            yield url


@pytest.fixture(scope="session")
def java_home() -> Path:
    """The home of a Java 17 or newer, for JAVA_HOME."""
    from headwater import local

    return local.java().home


def pytest_addoption(parser: pytest.Parser) -> None:
    """`make test` gives --no-skips: what can't be tested there is reported as a failure, not passed over."""
    parser.addoption("--no-skips", action="store_true", help="a skipped test counts as a failure")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Let the order of the tests and Hypothesis's examples come from one seed, in the processes of this run too."""
    os.environ[seeds.VARIABLE] = str(seeds.seed())
    for option, unset in (("randomly_seed", "default"), ("hypothesis_seed", None)):
        if getattr(config.option, option, seeds) == unset:
            setattr(config.option, option, seeds.seed())
    effort.load()


def pytest_report_header() -> str:
    """Tell the seed when a run begins."""
    return f"everything random comes from {seeds.VARIABLE}={seeds.seed()}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Tell how to see each failure again."""
    options = "--no-skips -m ''" if config.getoption("--no-skips") else "-m ''"
    failed = {report.nodeid for kind in ("failed", "error") for report in terminalreporter.stats.get(kind, ())}
    if failed:
        terminalreporter.section("to see it again")
        for nodeid in sorted(failed):
            again = f"{seeds.this_python()} -m pytest {options} {shlex.quote(nodeid)}"
            terminalreporter.write_line(seeds.command_to_repeat(again))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn a skip into a failure where none is allowed; an expected failure is no skip."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail"):
        _refuse_skip(item.config, report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """The same for a module that skips itself as a whole."""
    report = yield
    if report.skipped:
        _refuse_skip(collector.config, report)
    return report


def _refuse_skip(config: pytest.Config, report: pytest.TestReport | pytest.CollectReport) -> None:
    if config.getoption("--no-skips"):
        why = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"no test may be skipped here (--no-skips). {why}"
