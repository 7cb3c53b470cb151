"""Commands that ask a store, and those that delete: on a file, as somebody types them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from headwater.cli import main
from headwater.cli.asking.giving import moment, span_text
from headwater.cli.asking.tables import under_what_they_feed
from headwater.cli.events.reading import FoundRecord, read_all
from headwater.cli.events.sources import LogSource
from headwater.cli.life import telling
from headwater.cli.life.telling import bus_of
from headwater.events import (
    AddColumn,
    AlterTable,
    Closed,
    Column,
    Committed,
    CreateTable,
    DatasetsUnified,
    ErrorDetails,
    Event,
    Input,
    JobName,
    JobStarted,
    JobStatus,
    JobStatusChanged,
    LineageDeleted,
    Output,
    Sink,
    StatementFailed,
    Table,
)
from headwater.lineage.law import changes
from headwater.lineage.questions.datasets import Dataset
from headwater.lineage.questions.late import Hop
from headwater.lineage.store import open_store
from headwater.testing.examples import CONTEXT
from tests.unit.lineage.scribe import Scribe, at, place

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def told() -> list[Event]:
    scribe = Scribe(1, "app")
    scribe.tell(0, JobStarted, job_type="BATCH", user="ann")
    columns = (Column(name="id", type='"long"'),)
    names = place("daily")
    named = {"context": CONTEXT, "identifier": names["table"], "dataset": names["dataset"], "life": "1"}
    scribe.tell(1, CreateTable, table=Table(columns=columns), schema_id=0, **named)
    step: dict[str, Any] = {"job": JobName(name="app.daily"), "parent_job": JobName(name="app")}
    for snapshot, minute in ((3, 2), (4, 6)):
        inputs = (Input(**place("orders"), snapshot=9),)
        output = Output(**names, snapshot=snapshot, schema_id=int(minute > 5), made_from=(0,))
        scribe.tell(minute, Committed, barrier=minute * 1000, inputs=inputs, outputs=(output,), **step)
        if minute == 2:
            wider = Table(columns=(*columns, Column(name="b", type='"date"')))
            added = (AddColumn(path=("b",), type='"date"'),)
            scribe.tell(4, AlterTable, changes=added, new_table=wider, schema_id=1, **named)
    error = ErrorDetails(type="SparkException", message="disk full")
    scribe.tell(7, StatementFailed, error=error, outputs=(Sink(**place("weekly")),), **step)
    scribe.tell(8, JobStatusChanged, status=JobStatus.FAILED, error=error)
    scribe.tell(8, Closed)
    return scribe.told


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory, told: list[Event]) -> Path:
    file = tmp_path_factory.mktemp("stores") / "lineage.db"
    with open_store(f"sqlite:///{file}") as store:
        store.merge(row for event in told for row in changes(event))
    return file


@pytest.fixture
def url(tmp_path: Path, template: Path) -> str:
    for file in template.parent.glob("lineage.db*"):
        shutil.copy(file, tmp_path)
    return f"sqlite:///{tmp_path}/lineage.db"


@pytest.fixture
def run(url: str, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(command: str, *arguments: str, store: str | None = url) -> tuple[int, str, str]:
        where = [] if store is None else ["--store", store]
        code = main([command, *where, *arguments])
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


def rows(out: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(out.splitlines()[0])["rows"]
    return found


def test_what_a_person_sees(run: Run) -> None:
    code, out, _ = run("jobs", "lake.sales.daily")
    assert code == 0
    title, columns, job, *rest = out.splitlines()
    assert title == "Jobs of lake.sales.daily"
    assert columns.split() == ["does", "job", "part", "of", "runs", "first", "last", "last", "run"]
    assert job.split()[:5] == ["WRITES", "app.daily", "app", "1", "2026-03-01T12:02:00Z"]
    assert rest == ["How far this goes", "  complete until  2026-03-01T12:08:00Z"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("jobs",), {"job": "app", "type": "BATCH"}),
        (("tables", "app"), {"does": "WRITES", "table": "lake.sales.daily", "by": "app.daily"}),
        (("tables",), {"table": "lake.sales.daily", "place": "s3://lake/w/daily"}),
        (("uses", "sales.orders"), {"job": "app.daily", "users": "ann", "writes": 1, "downstream": 1}),
        (("late", "sales.daily"), {"table": "lake.sales.daily", "status": "FAILED", "snapshot": 4}),
        (("history", "sales.daily"), {"what": "CreateTable", "changes": "made with (id long)", "schema": 0}),
        (("history", "sales.daily", "3..4"), {"column": "b", "what": "ADDED", "after": "date"}),
        (("names", "sales.daily"), {"life": "1", "place": "s3://lake/w/daily", "ended": None}),
        (("runs", "app"), {"status": "FAILED", "took": "8 min 0 s", "failed": 1, "error": "SparkException: disk full"}),
    ],
    ids=lambda each: each[0] if isinstance(each, tuple) else "",
)
@pytest.mark.slow
def test_what_a_program_reads(run: Run, arguments: tuple[str, ...], expected: dict[str, object]) -> None:
    command, *rest = arguments
    code, out, _ = run(command, "--format", "json", *rest)
    assert code == 0
    assert any(expected.items() <= row.items() for row in rows(out)), out


def test_what_failed_stands_below_the_runs(run: Run) -> None:
    _, out, _ = run("runs", "app.daily")
    assert "Failed statements" in out
    assert "lake.sales.weekly" in out


def test_gaps(run: Run) -> None:
    assert rows(run("gaps", "--format", "json")[1]) == []
    assert run("gaps", "--table", "sales.daily", "--job", "app", "--since", "90d")[0] == 0


def test_late_shows_a_table_under_what_is_made_from_it() -> None:
    """`products` goes into both, `orders` into the details alone."""
    hops = [hop("top10", 0), hop("details", 1, "top10"), hop("products", 1, "details", "top10")]
    hops += [hop("letters", 2, "products"), hop("orders", 2, "details")]
    told = [(each.table, each.depth) for each in under_what_they_feed(hops)]
    assert told == [("top10", 0), ("details", 1), ("orders", 2), ("products", 1), ("letters", 2)]


def hop(table: str, depth: int, *feeds: str) -> Hop:
    nothing: dict[str, Any] = dict.fromkeys(
        ("job", "run", "status", "barrier", "snapshot", "version", "at", "age", "usual", "error")
    )
    return Hop(table=table, dataset=Dataset(b"", name=table), depth=depth, feeds=feeds, alive=False, **nothing)


def test_what_failed_has_its_error_last(run: Run) -> None:
    """It is as long as it is: behind it nothing stands in a column any more."""
    _, out, _ = run("runs", "app")
    assert out.splitlines()[1].endswith("  error")


def test_a_table_that_there_is_not(run: Run) -> None:
    code, _, err = run("late", "sales.dayly")
    assert (code, "did you mean lake.sales.daily?" in err) == (1, True)


@pytest.mark.parametrize(("command", "left"), [("delete-table-lineage", 0), ("delete-data-lineage", 1)])
def test_a_job_is_deleted(run: Run, command: str, left: int) -> None:
    code, out, _ = run(command, "--job", "app", "--dry-run")
    assert (code, "facts that it hides  " in out, "nothing was done" in out) == (0, True, True)
    assert len(rows(run("jobs", "--format", "json", "sales.daily")[1])) == 1
    code, out, _ = run(command, "--job", "app", "--yes")
    assert (code, "it holds from now on" in out) == (0, True)
    assert len(rows(run("jobs", "--format", "json", "sales.daily")[1])) == left
    hidden = json.loads(run(command, "--job", "app", "--dry-run", "--format", "json")[1].splitlines()[0])
    assert hidden["record"]["facts that it hides"] == 0


def test_nobody_is_there_to_be_asked(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: False)
    code, _, err = run("delete-data-lineage", "--job", "app")
    assert (code, "say --yes" in err) == (78, True)


@pytest.mark.parametrize(("answer", "expected"), [("y", True), ("", False), ("no", False)])
def test_somebody_is_asked(monkeypatch: pytest.MonkeyPatch, answer: str, expected: bool) -> None:
    from argparse import Namespace

    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    assert telling.confirmed(Namespace(yes=False), "really?", lambda _: answer) is expected


def test_expired_and_purged(run: Run) -> None:
    code, out, _ = run("expire", "--older-than", "2026-03-01T12:03", "--yes")
    assert (code, "facts that it hides  2" in out) == (0, True)
    assert {row["rows of"]: row["number"] for row in rows(run("purge", "--format", "json")[1])} == {
        "commits": 1,
        "reads": 1,
        "writes": 1,
        "edges": 0,
    }
    assert "DELETED of sales.daily" not in run("jobs", "sales.daily")[1]
    assert "DELETED of lake.sales.daily: some data lineage up to 2026-03-01T12:03:00" in run("jobs", "sales.daily")[1]


def test_expired_by_snapshot(run: Run) -> None:
    _, out, _ = run("expire", "--dataset", "sales.daily", "--up-to-snapshot", "3", "--yes")
    assert "facts that it hides  1" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "say --older-than AGE"),
        (("--older-than", "1d", "--dataset", "x"), "say --older-than AGE"),
        (("--dataset", "sales.daily"), "Name it by --up-to-snapshot"),
        (("--older-than", "1d", "--catalog", "nosuch"), "one catalog has to be called 'nosuch'"),
    ],
)
def test_what_is_to_expire_has_to_be_said(run: Run, arguments: tuple[str, ...], words: str) -> None:
    code, _, err = run("expire", *arguments)
    assert (code, words in err) == (78, True), err


def test_two_become_one(run: Run, capsys: pytest.CaptureFixture[str], url: str) -> None:
    code = main(["datasets", "unify", "--store", url, "--yes", "sales.orders", "--into", "s3://lake|w/daily"])
    assert (code, "it holds" in capsys.readouterr().out) == (0, True)
    assert [row["does"] for row in rows(run("jobs", "--format", "json", "sales.orders")[1])] == ["WRITES", "READS"]


def test_on_the_bus_it_is_an_event_by_the_rules_of_the_bus(
    tmp_path: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log"
    code, out, _ = run("delete-data-lineage", "--job", "app", "--bus", f"log:{log}", "--yes", store=None)
    assert (code, "it is on the bus" in out, "isn't known without --store" in out) == (0, True, False)
    main(["datasets", "unify", "--bus", f"log:{log}", "--yes", "a|b", "--into", "a|c"])
    assert "it is on the bus" in capsys.readouterr().out
    found = [each for each in read_all(LogSource(log)) if isinstance(each, FoundRecord)]
    deleted, unified = (each.content for each in found)
    assert isinstance(deleted, LineageDeleted)
    assert isinstance(unified, DatasetsUnified)
    assert (deleted.of_job, deleted.steps, deleted.scope.value) == (JobName(name="app"), True, "DATA")
    assert len(rows(run("jobs", "--format", "json", "sales.daily")[1])) == 1, "no store has read it yet"


@pytest.mark.parametrize("text", ["kafka:", "kafka://", "nats://x", "dir"])
def test_what_is_no_bus(text: str) -> None:
    with pytest.raises(ValueError, match="is no bus: write log:DIR, or kafka://HOST:PORT/TOPIC"):
        bus_of(text)


def test_buses() -> None:
    assert bus_of("kafka://a:1,b:2/t") == ("kafka", {"bootstrap.servers": "a:1,b:2", "topic": "t"})
    assert bus_of("kafka://a:1") == ("kafka", {"bootstrap.servers": "a:1"})
    assert bus_of("log:/x") == ("log", {"fsync": "always", "dir": "/x"})


def test_times_and_spans_as_people_write_them() -> None:
    assert moment("2026-03-01T12:00") == at(0)
    assert moment("2026-03-01T12:00:00Z") == at(0)
    assert abs(datetime.now(timezone.utc) - moment("2h") - timedelta(hours=2)) < timedelta(minutes=1)
    spans = [timedelta(days=3, hours=4, minutes=9), timedelta(minutes=2, seconds=5), timedelta(0)]
    assert [span_text(each) for each in spans] == ["3 d 4 h", "2 min 5 s", "0 s"]
