"""Commands that ask a store, and those that delete: on a file, as somebody types them."""

from __future__ import annotations

import io
import json
import shutil
from argparse import Namespace
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from headwater.cli import main
from headwater.cli.erasing import erase
from headwater.cli.events.reading import LocatedRecord, LogDirectory, read_all
from headwater.cli.flags import moment
from headwater.cli.lineage.publishing import bus_of
from headwater.cli.output import TextOutput, span_text
from headwater.cli.table import under_what_they_feed
from headwater.events import (
    AlterTable,
    Closed,
    Committed,
    CreateTable,
    DatasetsUnified,
    Event,
    Input,
    JobName,
    JobStarted,
    JobStatusChanged,
    LineageDeleted,
    Output,
    StatementFailed,
    Table,
)
from headwater.events.base import StringMap
from headwater.events.changes import AddColumn
from headwater.events.jobs import ErrorDetails, JobStatus, ReadMode, Sink
from headwater.events.tables import Column
from headwater.lineage.mapping import map_event
from headwater.lineage.questions.datasets import Dataset
from headwater.lineage.questions.lateness import LateHop
from headwater.lineage.store import open_store
from headwater.testing.examples import CONTEXT
from tests.kit.lineage.scripted_producer import ScriptedProducer, at, place
from tests.kit.stores import open_new_store

pytestmark = pytest.mark.slow

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def story_events() -> list[Event]:
    producer = ScriptedProducer(1, "app")
    producer.emit(0, JobStarted, job_type="BATCH", user="ann")
    columns = (Column(name="id", type='"long"'),)
    names = place("daily")
    named = {"context": CONTEXT, "identifier": names["table"], "dataset": names["dataset"], "generation": "1"}
    producer.emit(1, CreateTable, table=Table(columns=columns), schema_id=0, **named)
    step: dict[str, Any] = {"job": JobName(name="app.daily"), "parent_job": JobName(name="app")}
    for snapshot, minute in ((3, 2), (4, 6)):
        inputs = (Input(**place("orders"), snapshot=9),)
        output = Output(**names, snapshot=snapshot, schema_id=int(minute > 5), made_from=(0,))
        producer.emit(minute, Committed, barrier=minute * 1000, inputs=inputs, outputs=(output,), **step)
        if minute == 2:
            wider = Table(columns=(*columns, Column(name="b", type='"date"')))
            added = (AddColumn(path=("b",), type='"date"'),)
            producer.emit(4, AlterTable, changes=added, new_table=wider, schema_id=1, **named)
    error = ErrorDetails(type="SparkException", message="disk full")
    producer.emit(7, StatementFailed, error=error, outputs=(Sink(**place("weekly")),), **step)
    producer.emit(8, JobStatusChanged, status=JobStatus.FAILED, error=error)
    producer.emit(8, Closed)
    return producer.events


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory, story_events: list[Event]) -> Path:
    file = tmp_path_factory.mktemp("stores") / "lineage.db"
    with open_new_store(f"sqlite:///{file}") as store:
        store.merge(row for event in story_events for row in map_event(event))
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
        code = main([*command.split(), *where, *arguments])
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


def rows(out: str) -> list[dict[str, Any]]:
    """The rows of the answer's tables."""
    return [row for part in json.loads(out).values() if isinstance(part, list) for row in part]


def test_what_a_person_sees(run: Run) -> None:
    code, out, _ = run("table jobs", "lake.sales.daily")
    assert code == 0
    title, columns, job, *rest = out.splitlines()
    assert title == "Jobs of lake.sales.daily"
    assert columns.split() == ["does", "job", "part", "of", "runs", "first", "last", "last", "run"]
    assert job.split()[:5] == ["WRITES", "app.daily", "app", "1", "2026-03-01T12:02:00Z"]
    assert rest == ["How far this goes", "  complete until  2026-03-01T12:08:00Z"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("job list",), {"job": "app", "type": "BATCH", "part_of": None}),
        (("job tables", "app"), {"does": "WRITES", "table": "lake.sales.daily", "by": "app.daily"}),
        (("table list",), {"table": "lake.sales.daily", "place": "s3://lake/w/daily"}),
        (("table jobs", "sales.daily"), {"does": "WRITES", "last": "2026-03-01T12:06:00Z"}),
        (("table uses", "sales.orders"), {"job": "app.daily", "users": ["ann"], "writes": 1, "downstream": 1}),
        (("table late", "sales.daily"), {"table": "lake.sales.daily", "status": "FAILED", "snapshot": "4"}),
        (("table history", "sales.daily"), {"what": "CreateTable", "changes": ["made with (id long)"], "schema": 0}),
        (("table history", "sales.daily", "3..4"), {"column": "b", "what": "ADDED", "after": "date"}),
        (("table names", "sales.daily"), {"generation": "1", "place": "s3://lake/w/daily", "ended": None}),
        (("job runs", "app"), {"status": "FAILED", "took": 480.0, "failed": 1, "error": "SparkException: disk full"}),
    ],
    ids=lambda each: each[0] if isinstance(each, tuple) else "",
)
@pytest.mark.slow
def test_what_a_program_reads(run: Run, arguments: tuple[str, ...], expected: dict[str, object]) -> None:
    command, *rest = arguments
    code, out, _ = run(command, "-o", "json", *rest)
    assert code == 0
    assert any(expected.items() <= row.items() for row in rows(out)), out


def test_what_failed_stands_below_the_runs(run: Run) -> None:
    _, out, _ = run("job runs", "app.daily")
    assert "Failed statements" in out
    assert "lake.sales.weekly" in out


def test_there_are_no_gaps(run: Run) -> None:
    assert rows(run("gap list", "-o", "json")[1]) == []


@pytest.fixture
def with_gaps(url: str) -> None:
    """One event of `app` never came, and another producer, of `dead`, fell silent."""
    app, dead = ScriptedProducer(2, "app"), ScriptedProducer(3, "dead")
    for producer, table in ((app, "weekly"), (dead, "yearly")):
        producer.emit(20, JobStarted, job_type="BATCH")
        output = Output(**place(table), snapshot=1, made_from=())
        step: dict[str, Any] = {"job": JobName(name=f"{producer.job.name}.{table}"), "parent_job": producer.job}
        producer.emit(21, Committed, barrier=21_000, outputs=(output,), **step)
    app.lose(22, JobStatusChanged, status=JobStatus.FAILED)
    app.emit(23, JobStatusChanged, status=JobStatus.FINISHED)
    app.emit(23, Closed)
    with open_new_store(url) as store:
        store.merge(row for producer in (app, dead) for event in producer.events for row in map_event(event))


def test_gaps(run: Run, with_gaps: None) -> None:
    hole = {"what": "MISSING_SEQUENCE", "events": 1, "from": "2026-03-01T12:20:00Z", "to": "2026-03-01T12:23:00Z"}
    found = rows(run("gap list", "-o", "json")[1])
    assert [{key: each[key] for key in hole} for each in found if each["what"] == "MISSING_SEQUENCE"] == [hole]
    assert sorted(each["what"] for each in found) == ["MISSING_SEQUENCE", "SILENCE"]
    code, out, _ = run("gap list")
    assert code == 0
    assert "number 3 of its JOB events never came" in " ".join(out.split())
    assert "its heartbeats stopped" in " ".join(out.split())


@pytest.mark.parametrize(
    ("arguments", "causes"),
    [
        (("--job", "app"), ["MISSING_SEQUENCE"]),
        (("--job", "dead"), ["SILENCE"]),
        (("--table", "sales.weekly"), ["MISSING_SEQUENCE"]),
        (("--table", "sales.yearly"), ["SILENCE"]),
        (("--table", "sales.orders"), []),
        (("--until", "2026-03-01T12:10:00Z"), []),
        (("--since", "2026-03-01T12:22:30Z"), ["MISSING_SEQUENCE"]),
        (("--since", "2026-03-02"), []),
    ],
    ids=" ".join,
)
def test_gaps_are_narrowed(run: Run, with_gaps: None, arguments: tuple[str, ...], causes: list[str]) -> None:
    assert [each["what"] for each in rows(run("gap list", *arguments, "-o", "json")[1])] == causes


def test_late_shows_a_table_under_what_is_made_from_it() -> None:
    """`products` goes into both, `orders` into the details alone."""
    hops = [hop("top10", 0), hop("details", 1, "top10"), hop("products", 1, "details", "top10")]
    hops += [hop("letters", 2, "products"), hop("orders", 2, "details")]
    story_events = [(each.table, each.depth) for each in under_what_they_feed(hops)]
    assert story_events == [("top10", 0), ("details", 1), ("orders", 2), ("products", 1), ("letters", 2)]


def hop(table: str, depth: int, *feeds: str) -> LateHop:
    nothing: dict[str, Any] = dict.fromkeys(
        ("job", "run", "status", "barrier", "snapshot", "version", "at", "age", "usual", "error")
    )
    return LateHop(table=table, dataset=Dataset(b"", name=table), depth=depth, feeds=feeds, alive=False, **nothing)


@pytest.fixture
def with_long_errors(url: str) -> None:
    """A job that failed twice: what Spark filled into the statement's error has many lines."""
    producer = ScriptedProducer(5, "long")
    producer.emit(20, JobStarted, job_type="BATCH", user="ann")
    plan = "".join(f"\n{'  ' * n}+- Project [column_{n} AS c{n}]" for n in range(60))
    message = "[TABLE_OR_VIEW_NOT_FOUND] The table cannot be found."
    error = ErrorDetails(type="AnalysisException", message=message, parameters=StringMap({"plan": plan}))
    producer.emit(21, StatementFailed, error=error, outputs=(Sink(**place("weekly")),))
    producer.emit(22, JobStatusChanged, status=JobStatus.FAILED, error=ErrorDetails(type="ExitError", message="code 3"))
    producer.emit(23, Closed)
    with open_store(url) as store:
        store.merge(row for event in producer.events for row in map_event(event))


def test_runs_fit_a_terminal(run: Run, with_long_errors: None) -> None:
    """An error of sixty lines stood on one line, behind all columns. A program gets all of it."""
    code, out, _ = run("job runs", "long")
    assert (code, max(map(len, out.splitlines())) <= 100, len(out.splitlines()) < 20) == (0, True, True)
    for words in ("TABLE_OR_VIEW_NOT_FOUND", "ExitError: code 3", "-o json shows all of it", "lake.sales.weekly"):
        assert words in out
    found = json.loads(run("job runs", "long", "-o", "json")[1])
    assert [each["error"] for each in found["runs"]] == ["ExitError: code 3"]
    (error,) = [each["error"] for each in found["failed_statements"]]
    assert error.startswith("AnalysisException: [TABLE_OR_VIEW_NOT_FOUND] The table cannot be found. (plan=\n")
    assert (error.count("Project"), error.count("\n")) == (60, 60)


def test_an_error_of_a_run_that_a_statement_has_stands_once(run: Run) -> None:
    _, out, _ = run("job runs", "app")
    assert out.count("SparkException: disk full") == 1


def test_what_a_table_waits_for_fits_a_terminal(run: Run) -> None:
    """Also where an error is long: what is cut by a terminal isn't read."""
    code, out, _ = run("table late", "sales.daily")
    assert (code, max(map(len, out.splitlines())) <= 100) == (0, True)
    assert ("FAILED" in out, "SparkException: disk full" in out) == (True, True)


def test_where_the_time_of_a_late_table_went(run: Run, url: str) -> None:
    """It finds spans under the wrong heading, and a statement that is shown as a run though its commit isn't known."""
    producer = ScriptedProducer(5, "rollup")
    made = Output(**place("items"), snapshot=1, made_from=())
    producer.emit(1, Committed, barrier=1, outputs=(made,), started=at(0), ended=at(1))
    for minute in (4, 14, 24):
        counts: dict[str, Any] = {"files": 3, "bytes": 12 * 2**20, "snapshot_time": at(minute - 0.5)}
        made = Output(**place("sums"), snapshot=minute, made_from=(0,), **counts)
        read = Input(**place("items"), snapshot=1, mode=ReadMode.STATE)
        times: dict[str, Any] = {"started": at(minute - 2), "ended": at(minute)}
        producer.emit(minute, Committed, barrier=minute, inputs=(read,), outputs=(made,), **times)
    with open_store(url) as store:
        store.merge(row for event in producer.events for row in map_event(event))
    _, out, _ = run("table late", "sales.sums")
    lines = out.splitlines()
    begin = lines.index("Where the time of each last commit went")
    assert lines[begin + 1 : begin + 4] == [
        "  table             source  trigger     run               commit  files/day     each  aim for",
        "  lake.sales.sums   0 s     21 min 0 s  1 min 30 s        30 s          432  4.0 MiB  40 min 0 s",
        "  lake.sales.items  -       -           1 min 0 s (both)  -               -        -  -",
    ]
    sums, items = json.loads(run("table late", "sales.sums", "-o", "json")[1])["upstream"]
    seconds = ("waited_for_source", "waited_for_trigger", "ran", "commit_took", "statement_took")
    assert [sums[key] for key in seconds] == [0, 21 * 60, 90, 30, 120]
    assert [items[key] for key in seconds] == [None, None, None, None, 60]
    costs = ("commits_per_day", "files_per_day", "file_bytes", "recommended_interval")
    assert [sums[key] for key in costs] == [144, 432, 4 * 2**20, 40 * 60]
    assert [items[key] for key in costs] == [None] * 4


def test_a_table_that_there_is_not(run: Run) -> None:
    code, _, err = run("table late", "sales.dayly")
    assert (code, "did you mean lake.sales.daily?" in err) == (78, True)


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("table list", ()),
        ("table jobs", ("sales.daily",)),
        ("table uses", ("sales.orders",)),
        ("table late", ("sales.daily",)),
        ("table history", ("sales.daily",)),
        ("table names", ("sales.daily",)),
        ("job list", ()),
        ("job tables", ("app",)),
        ("job runs", ()),
        ("gap list", ()),
    ],
)
def test_no_list_is_longer_than_its_limit(run: Run, with_gaps: None, command: str, arguments: tuple[str, ...]) -> None:
    document = json.loads(run(command, *arguments, "--limit", "1", "-o", "json")[1])
    assert max(len(part) for part in document.values() if isinstance(part, list)) == 1
    if command == "table history":
        assert document["reliability"]["partial_because"] == [
            "CUT of 2 rows: these are the first 1; --limit shows more"
        ]


@pytest.mark.parametrize(("scope", "left"), [("tables", 0), ("data", 1)])
def test_a_job_is_deleted(run: Run, scope: str, left: int) -> None:
    arguments = ("--scope", scope, "--job", "app")
    code, out, _ = run("lineage delete", *arguments, "--dry-run")
    assert (code, "facts that it hides  " in out, "nothing was done" in out) == (0, True, True)
    assert len(jobs_of_daily(run)) == 1
    code, out, _ = run("lineage delete", *arguments, "--yes")
    assert (code, "it holds from now on" in out) == (0, True)
    assert len(jobs_of_daily(run)) == left
    answer = json.loads(run("lineage delete", *arguments, "--dry-run", "-o", "json")[1])
    assert (answer["deletion"]["facts_that_it_hides"], answer["done"]) == (0, False)


def jobs_of_daily(run: Run) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(run("table jobs", "-o", "json", "sales.daily")[1])["jobs"]
    return found


@pytest.mark.parametrize(
    ("arguments", "words"), [(("--scope", "data"), "which job?"), (("--job", "app"), "Say --scope tables or")]
)
def test_what_is_to_be_deleted_has_to_be_said(run: Run, arguments: tuple[str, ...], words: str) -> None:
    code, _, err = run("lineage delete", *arguments)
    assert (code, words in err) == (78, True)


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("lineage delete", ("--scope", "data", "--job", "app")),
        ("lineage expire", ("--older-than", "2026-03-01T12:03")),
        ("store purge", ()),
    ],
)
def test_without_a_terminal_nothing_is_erased(
    run: Run, monkeypatch: pytest.MonkeyPatch, command: str, arguments: tuple[str, ...]
) -> None:
    if command == "store purge":
        run("lineage expire", "--older-than", "2026-03-01T12:03", "--yes")
    monkeypatch.setattr("sys.stdin.isatty", lambda: False)
    for variable in ("HEADWATER_YES", "HEADWATER_ALL", "HEADWATER_PURGE"):
        monkeypatch.setenv(variable, "true")
    code, _, err = run(command, *arguments)
    assert (code, "give --yes, or --dry-run" in err) == (78, True)
    assert len(jobs_of_daily(run)) == 1


@pytest.mark.parametrize(("answer", "expected"), [("y\n", 0), ("yes\n", 0), ("\n", 1), ("", 1), ("no\n", 1)])
def test_at_a_terminal_somebody_is_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], answer: str, expected: int
) -> None:
    terminal = io.StringIO(answer)
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdin", terminal)
    done: list[str] = []

    def work() -> tuple[str, dict[str, object]]:
        done.append("done")
        return "done", {}

    code = erase(Namespace(yes=False, dry_run=False), TextOutput(), "really?", work)
    assert (code, len(done)) == (expected, 1 - expected)
    out, err = capsys.readouterr()
    assert err == "really? [y/N] ", "the answer has standard output for itself"
    assert out == ("nothing was done\n" if expected else "done\n")


def test_expired_and_purged(run: Run) -> None:
    code, out, _ = run("lineage expire", "--older-than", "2026-03-01T12:03", "--yes")
    assert (code, "facts that it hides  2" in out) == (0, True)
    answer = json.loads(run("store purge", "--dry-run", "-o", "json")[1])
    assert (answer["purge"]["commits_to_remove"], answer["done"]) == (1, False)
    answer = json.loads(run("store purge", "--yes", "-o", "json")[1])
    assert (answer["purge"]["commits_to_remove"], answer["done"]) == (1, True), "the dry run removed nothing"
    assert answer["removed"] == {"commits": 1, "reads": 1, "writes": 1, "edges": 0}
    assert run("store purge")[:2][1].endswith("there is nothing to do\n"), "nobody is asked for nothing"
    assert "DELETED of sales.daily" not in run("table jobs", "sales.daily")[1]
    words = "DELETED of lake.sales.daily: some data lineage up to 2026-03-01T12:03:00"
    assert words in run("table jobs", "sales.daily")[1]


def test_expired_by_snapshot(run: Run) -> None:
    _, out, _ = run("lineage expire", "--dataset", "sales.daily", "--up-to-snapshot", "3", "--yes")
    assert "facts that it hides  1" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "say --older-than AGE"),
        (("--older-than", "1d", "--dataset", "x"), "say --older-than AGE"),
        (("--dataset", "sales.daily"), "Name it by --up-to-snapshot"),
        (("--older-than", "1d", "--catalog", "nosuch"), "the store knows no catalog 'nosuch'"),
    ],
)
def test_what_is_to_expire_has_to_be_said(run: Run, arguments: tuple[str, ...], words: str) -> None:
    code, _, err = run("lineage expire", *arguments)
    assert (code, words in err) == (78, True), err


def test_two_become_one(run: Run, capsys: pytest.CaptureFixture[str], url: str) -> None:
    code = main(["table", "unify", "--store", url, "--yes", "sales.orders", "--into", "s3://lake|w/daily"])
    assert (code, "it holds" in capsys.readouterr().out) == (0, True)
    assert [row["does"] for row in rows(run("table jobs", "-o", "json", "sales.orders")[1])] == ["WRITES", "READS"]


@pytest.mark.slow
def test_on_the_bus_it_is_an_event_by_the_rules_of_the_bus(
    tmp_path: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log"
    code, out, _ = run("lineage delete", "--scope", "data", "--job", "app", "--bus", f"log:{log}", "--yes", store=None)
    assert (code, "it is on the bus" in out, "isn't known without --store" in out) == (0, True, False)
    main(["table", "unify", "--bus", f"log:{log}", "--yes", "a|b", "--into", "a|c"])
    assert "it is on the bus" in capsys.readouterr().out
    found = [each for each in read_all(LogDirectory(log)) if isinstance(each, LocatedRecord)]
    deleted, unified = (each.content for each in found)
    assert isinstance(deleted, LineageDeleted)
    assert isinstance(unified, DatasetsUnified)
    assert (deleted.of_job, deleted.steps, deleted.scope.value) == (JobName(name="app"), True, "DATA")
    assert len(jobs_of_daily(run)) == 1, "no store has read it yet"


@pytest.mark.parametrize("text", ["kafka:", "kafka://", "nats://x", "dir"])
def test_what_is_no_bus(text: str) -> None:
    with pytest.raises(ValueError, match="isn't a bus: write log:DIR, or kafka://HOST:PORT/TOPIC"):
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
