"""What is recorded of applications and blocks: each begins once, ends once, and late statements still find their
block."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from headwater.events.base import CountMap
from headwater.events.envelope import Event
from headwater.events.health import Closed, Heartbeat
from headwater.events.jobs import (
    JobStarted,
    JobStatus,
    JobStatusChanged,
    LineageRetention,
    RunScope,
    SparkDetails,
    StartPosition,
    StartReason,
)
from headwater.listeners.attribution import Client
from headwater.listeners.jobs import ENDED, FINISHED, ApplicationFacts, ApplicationRuns, RunEnd, run_end_of
from headwater.listeners.settings import Settings

SPARK = SparkDetails(version="3.5.7")


class EmittedEvents(list[Event]):
    def statuses(self) -> list[tuple[str, JobStatus]]:
        return [(str(event.job), event.status) for event in self if isinstance(event, JobStatusChanged)]

    def starts(self) -> list[JobStarted]:
        return [event for event in self if isinstance(event, JobStarted)]


@pytest.fixture
def emitted() -> EmittedEvents:
    return EmittedEvents()


@pytest.fixture
def jobs(emitted: EmittedEvents) -> ApplicationRuns:
    facts = ApplicationFacts(
        id="app-1",
        name="orders",
        user="anna",
        spark=SPARK,
        configuration={"spark.headwater.job.code.version": "1.2", "spark.sql.ansi.enabled": "true"},
    )
    return ApplicationRuns(facts, Settings(tags={"team": "sales"}), emitted.append, max_remembered=3)


def test_an_application_from_its_start_to_its_end(jobs: ApplicationRuns, emitted: EmittedEvents) -> None:
    jobs.begin()
    jobs.emit_heartbeat(60, CountMap({"spool": 2}))
    jobs.finish(FINISHED)
    jobs.emit_heartbeat(60, CountMap())
    jobs.finish(ENDED)
    jobs.close(complete=True, dropped=CountMap())
    assert [event.kind for event in emitted] == [
        "JobStarted",
        "JobStatusChanged",
        "Heartbeat",
        "JobStatusChanged",
        "Closed",
    ]
    assert emitted.statuses() == [("orders", JobStatus.RUNNING), ("orders", JobStatus.FINISHED)]
    assert {(str(event.job), event.run) for event in emitted} == {("orders", jobs.application_run)}
    (started,) = emitted.starts()
    assert (started.user, started.code_version, started.spark) == ("anna", "1.2", SPARK)
    assert dict(started.tags) == {"team": "sales"}
    assert dict(started.configuration)["spark.sql.ansi.enabled"] == "true"
    assert started.parent_run is None
    (beat,) = (event for event in emitted if isinstance(event, Heartbeat))
    assert (beat.interval, dict(beat.dropped)) == (60, {"spool": 2})
    assert isinstance(emitted[-1], Closed)


def test_a_block_is_a_run_of_its_own(jobs: ApplicationRuns, emitted: EmittedEvents) -> None:
    begins = StartPosition(dataset=None, snapshot=7, reason=StartReason.ALIGNED)
    outer = jobs.open_block("load", None, {"layer": "raw"}, starts_at=(begins,))
    inner = jobs.open_block("clean", "quality", {}, [outer.tag, "a user's own"])
    of_statement = jobs.attribution({}, ["a user's own", inner.tag, outer.tag], "c.d.t")
    assert (str(of_statement.job), of_statement.run) == ("quality/clean", inner.run)
    assert of_statement.parent_job == inner.job
    jobs.end_block(inner, FINISHED)
    jobs.end_block(outer, run_end_of(ValueError("no")))
    assert emitted.statuses() == [("quality/clean", JobStatus.RUNNING)]
    jobs.emit_ends(jobs.unreported_ends())
    assert emitted.statuses()[1:] == [
        ("quality/clean", JobStatus.FINISHED),
        ("load", JobStatus.RUNNING),
        ("load", JobStatus.FAILED),
    ]
    starts = {str(start.job): start for start in emitted.starts()}
    assert starts["quality/clean"].parent_run == outer.run
    assert starts["quality/clean"].parent_job == outer.job
    assert starts["load"].parent_run == jobs.application_run
    assert {start.scope for start in starts.values()} == {RunScope.BLOCK}
    assert dict(starts["load"].tags) == {"team": "sales", "layer": "raw"}
    assert [starts[name].starts_at for name in ("load", "quality/clean")] == [(begins,), ()]
    failed = next(event for event in emitted if isinstance(event, JobStatusChanged) and event.error is not None)
    assert failed.error is not None
    assert (failed.error.type, failed.error.message) == ("ValueError", "no")


def test_what_becomes_of_the_lineage_is_reported_with_the_end_and_the_blocks_own_word_goes_before(
    emitted: EmittedEvents,
) -> None:
    facts = ApplicationFacts(id="app-1", name="orders", user="anna", spark=SPARK)
    jobs = ApplicationRuns(facts, Settings.model_validate({"lineage.on-job-end": "delete-table"}), emitted.append)
    jobs.begin()
    for name, on_end in (("as all", None), ("own", LineageRetention.KEEP)):
        jobs.end_block(jobs.open_block(name, None, {}, on_end=on_end), FINISHED)
    jobs.finish(FINISHED)
    policies = {(str(each.job), each.status): each.on_job_end for each in emitted if isinstance(each, JobStatusChanged)}
    assert policies == {
        ("orders", JobStatus.RUNNING): None,
        ("as all", JobStatus.RUNNING): None,
        ("own", JobStatus.RUNNING): None,
        ("as all", JobStatus.FINISHED): LineageRetention.DELETE_TABLE,
        ("own", JobStatus.FINISHED): LineageRetention.KEEP,
        ("orders", JobStatus.FINISHED): LineageRetention.DELETE_TABLE,
    }


def test_ended_blocks_are_remembered_for_late_statements_but_not_for_ever(jobs: ApplicationRuns) -> None:
    blocks = [jobs.open_block(f"load {n}", None, {}) for n in range(5)]
    for block in blocks:
        jobs.end_block(block, FINISHED)
    jobs.emit_ends(jobs.unreported_ends())
    found = [jobs.attribution({}, [block.tag], None).run == block.run for block in blocks]
    assert found == [False, False, True, True, True]


@pytest.mark.parametrize(
    "tag", ["headwater-", "headwater-nonsense", "headwater-0f2c9a52-5d0a-4c3e-9a6e-0c1d2e3f4a5b", "other"]
)
def test_tags_of_nobody_mean_nothing(jobs: ApplicationRuns, tag: str) -> None:
    assert jobs.attribution({}, [tag], None).run == jobs.application_run


@pytest.mark.parametrize(
    ("ending", "of_block"),
    [
        (FINISHED, JobStatus.ENDED),
        (run_end_of(ValueError()), JobStatus.ENDED),
        (run_end_of(KeyboardInterrupt()), JobStatus.KILLED),
    ],
)
def test_blocks_that_nobody_left_end_with_the_application(
    jobs: ApplicationRuns, emitted: EmittedEvents, ending: RunEnd, of_block: JobStatus
) -> None:
    block = jobs.open_block("load", None, {})
    left = jobs.open_block("clean", None, {}, [block.tag])
    jobs.end_block(left, FINISHED)
    jobs.finish(ending)
    jobs.end_block(block, FINISHED)
    jobs.emit_ends([block, left])
    assert emitted.statuses() == [
        ("load", JobStatus.RUNNING),
        ("load", of_block),
        ("clean", JobStatus.RUNNING),
        ("clean", JobStatus.FINISHED),
        ("orders", ending.status),
    ]


def test_threads_that_meet_at_a_block_tell_it_once(jobs: ApplicationRuns, emitted: EmittedEvents) -> None:
    blocks = [jobs.open_block(f"load {n}", None, {}) for n in range(50)]
    together = threading.Barrier(4)

    def end_all() -> None:
        together.wait()
        for block in blocks:
            jobs.attribution({}, [block.tag], None)
            jobs.end_block(block, FINISHED)
            jobs.emit_ends([block])

    threads = [threading.Thread(target=end_all) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(emitted.statuses()) == sorted(
        (str(block.job), status) for block in blocks for status in (JobStatus.RUNNING, JobStatus.FINISHED)
    )


@pytest.mark.parametrize(
    ("error", "status", "exit_code", "signal"),
    [
        (None, JobStatus.FINISHED, None, None),
        (SystemExit(), JobStatus.FINISHED, 0, None),
        (SystemExit(0), JobStatus.FINISHED, 0, None),
        (SystemExit(3), JobStatus.FAILED, 3, None),
        (SystemExit(-1), JobStatus.FAILED, 255, None),
        (SystemExit("no"), JobStatus.FAILED, 1, None),
        (KeyboardInterrupt(), JobStatus.KILLED, None, 2),
        (ValueError("no"), JobStatus.FAILED, None, None),
        (GeneratorExit(), JobStatus.ENDED, None, None),
    ],
)
def test_how_something_was_left(
    error: BaseException | None, status: JobStatus, exit_code: int | None, signal: int | None
) -> None:
    ending = run_end_of(error)
    assert (ending.status, ending.exit_code, ending.signal) == (status, exit_code, signal)


class _SparkError(Exception):
    desc = "[TABLE_OR_VIEW_NOT_FOUND] The table `t` cannot be found. SQLSTATE: 42P01"

    def __str__(self) -> str:
        raise AssertionError("this asks the JVM")


class _SpeechlessError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no")


def test_errors_in_words() -> None:
    details = run_end_of(_SparkError()).details()
    assert details is not None
    assert (details.condition, details.sql_state) == ("TABLE_OR_VIEW_NOT_FOUND", "42P01")
    speechless = run_end_of(_SpeechlessError()).details()
    assert speechless is not None
    assert "RuntimeError" in speechless.message
    java = run_end_of(ValueError("it broke\n\tat a.b.C(D.java:1)\n\tat …\ud800")).details()
    assert java is not None
    assert java.message == "it broke"


def test_a_session_of_a_client_is_a_run_of_its_own(jobs: ApplicationRuns, emitted: EmittedEvents) -> None:
    jobs.begin()
    anna = Client("connect", "s1", "anna", "op-1")
    jobs.end_session(Client("connect", "s0", "anna"))  # it did nothing
    of_anna = jobs.attribution({}, [], "c.d.t", anna)
    again = jobs.attribution({"spark.headwater.job.name": "etl"}, [], "c.d.t", replace(anna, operation="op-2"))
    of_ben = jobs.attribution({}, [], "c.d.t", Client("thrift", "s1", "ben"))
    of_nobody = jobs.attribution({}, [], "c.d.t", Client("connect", "s1"))
    assert [str(each.job) for each in (of_anna, again, of_ben)] == ["orders.c.d.t", "etl", "orders.c.d.t"]
    assert of_anna.run == again.run
    assert len({jobs.application_run, of_anna.run, of_ben.run, of_nobody.run}) == 4
    assert [str(each.parent_job) for each in (of_anna, of_ben, of_nobody)] == [
        "orders.anna",
        "orders.ben",
        "orders.connect",
    ]
    starts = emitted.starts()[1:]
    assert {each.scope for each in starts} == {RunScope.SESSION}
    assert {each.parent_run for each in starts} == {jobs.application_run}
    assert [each.user for each in starts] == ["anna", "ben", None]
    assert dict(starts[0].tags) == {"team": "sales", "client.server": "connect", "client.session": "s1"}
    jobs.end_session(replace(anna, operation=None))
    jobs.end_session(anna)
    assert jobs.attribution({}, [], None, anna).run == of_anna.run, "what comes late finds its session"
    jobs.set_expected_end(RunEnd(status=JobStatus.KILLED, signal=15))
    jobs.end_session(Client("thrift", "s1", "ben"))
    jobs.finish(RunEnd(status=JobStatus.KILLED, signal=15))
    assert [each for each in emitted.statuses() if each[1] is not JobStatus.RUNNING] == [
        ("orders.anna", JobStatus.ENDED),
        ("orders.ben", JobStatus.KILLED),
        ("orders.connect", JobStatus.KILLED),
        ("orders", JobStatus.KILLED),
    ]


def test_sessions_are_remembered_for_a_while(jobs: ApplicationRuns) -> None:
    clients = [Client("thrift", f"s{n}", "ben") for n in range(5)]
    runs = [jobs.session(client).run for client in clients]
    for client in clients:
        jobs.end_session(client)
    assert [jobs.session(client).run == run for client, run in zip(clients[2:], runs[2:], strict=True)] == [True] * 3
    assert jobs.session(clients[0]).run != runs[0]
