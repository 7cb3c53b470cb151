"""What the bus does for its listeners, and what it spares the one who tells."""

from __future__ import annotations

import logging
import os
import re
import signal
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headwater.errors import ConfigurationError, TransientError
from headwater.events import Gap, JobStatusChanged
from headwater.events.base import CountMap, StringMap
from headwater.events.envelope import Event, EventFamily
from headwater.events.health import GapReason, Heartbeat
from headwater.events.jobs import JobStarted, JobStatus, JobType
from headwater.events.names import JobName
from headwater.listeners.bus import ListenerState
from headwater.spi import ListenerContext, RecordBatch, SpoolPosition
from headwater.testing.examples import DRAFTS, RUN
from tests.kit.bus.scripts import QUICK, SCRIPTS, Hearing, Taking, bus_of, emit_all, ids
from tests.kit.waiting import until


def test_every_listener_gets_every_event_in_order_and_nothing_is_left(tmp_path: Path) -> None:
    durable, plain = Taking(), Hearing()
    with bus_of(tmp_path, {"durable": lambda _: durable, "plain": lambda _: plain}) as bus:
        emitted = emit_all(bus, DRAFTS)
        assert bus.flush(60)
        assert ids(durable.records) == ids(emitted)
        assert plain.events == emitted
        assert [event.sequence for event in emitted] == list(range(1, len(DRAFTS) + 1))
        assert bus.stop(60)
    assert len(durable.closes) == len(plain.closes) == 1
    assert list(tmp_path.iterdir()) == []
    assert not plain.missed
    assert bus.report().is_delivered


def test_a_family_listener_is_told_its_family_only(tmp_path: Path) -> None:
    every, catalog, job = Taking(), Taking(), Hearing()
    module = "tests.kit.bus.scripts:ScriptFactory"
    lists = {
        "catalog.listeners": f"changes={module}",
        "job.listeners": f"jobs={module}",
        "listeners": f"every={module}",
    }
    scripts = {"every": lambda _: every, "changes": lambda _: catalog, "jobs": lambda _: job}
    with bus_of(tmp_path, scripts, lists) as bus:
        emitted = emit_all(bus, DRAFTS)
        assert bus.flush(60)
        assert bus.stop(60), "what is passed over is dealt with too"
    assert ids(every.records) == ids(emitted)
    assert ids(catalog.records) == ids(
        event for event in emitted if event.family in {EventFamily.CATALOG, EventFamily.ADMIN}
    )
    assert ids(job.events) == ids(event for event in emitted if event.family in {EventFamily.JOB, EventFamily.ADMIN})
    assert 0 < len(job.events) < len(emitted)


def test_passing_over_decodes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = Taking()
    lists = {"catalog.listeners": "changes=tests.kit.bus.scripts:ScriptFactory", "listeners": ""}
    with bus_of(tmp_path, {"changes": lambda _: catalog}, lists) as bus:
        monkeypatch.setattr("headwater.events.avro.Codec.decode", _must_not_be_called)
        emitted = emit_all(bus, DRAFTS)
        assert bus.flush(60)
    assert 0 < len(catalog.records) < len(emitted)


def _must_not_be_called(*_: object) -> None:
    raise AssertionError("somebody decoded an event")


def test_all_calls_to_a_listener_come_on_one_thread_of_its_own(tmp_path: Path) -> None:
    threads: dict[str, set[int]] = {"durable": set(), "plain": set()}

    def noting(name: str, base: Any) -> Any:
        class Noting(base):  # type: ignore[misc]  # the base is a parameter
            def __getattribute__(self, attribute: str) -> Any:
                if attribute in {"handle", "flush", "close", "on_event"}:
                    threads[name].add(threading.get_ident())
                return super().__getattribute__(attribute)

        def make(context: ListenerContext) -> Any:
            threads[name].add(threading.get_ident())
            return Noting()

        return make

    with bus_of(tmp_path, {"durable": noting("durable", Taking), "plain": noting("plain", Hearing)}) as bus:
        emit_all(bus, DRAFTS)
        assert bus.flush(60)
    assert [len(each) for each in threads.values()] == [1, 1]
    assert len(threads["durable"] | threads["plain"] | {threading.get_ident()}) == 3


def test_a_listener_finds_what_it_needs_in_its_context(tmp_path: Path) -> None:
    contexts: list[ListenerContext] = []

    def make(context: ListenerContext) -> Taking:
        contexts.append(context)
        return Taking()

    keys = {"mine.bootstrap.servers": "a,b", "mine2.x": "no", "listeners": "mine=tests.kit.bus.scripts:ScriptFactory"}
    with bus_of(tmp_path, {"mine": make}, keys) as bus:
        until(lambda: contexts)
        context = contexts[0]
        assert context.name == "mine"
        assert context.prefix == "spark.headwater.mine."
        assert context.configuration == {"bootstrap.servers": "a,b"}
        assert context.application.id == "application_1"
        assert context.executor.submit(lambda: 7).result(60) == 7
        for _ in range(3):
            context.clock.observe(5_000_000_000_000_000)
        (event,) = bus.emit(Heartbeat())
        assert event.time.year > 2100
        assert [str(fault) for fault in bus.faults] == [
            "there is no key spark.headwater.mine2.x: did you mean spark.headwater.mine.x?"
        ]


def test_what_a_factory_says_is_wrong_is_reported_once_and_harms_nobody(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sound, tries = Taking(), []

    def wrong(context: ListenerContext) -> Any:
        tries.append(context)
        raise ConfigurationError("spark.headwater.wrong.url is missing")

    with bus_of(tmp_path, {"wrong": wrong, "sound": lambda _: sound}) as bus:
        emitted = emit_all(bus, DRAFTS)
        until(lambda: bus.faults)
        until(lambda: len(sound.records) == len(emitted))
        assert not bus.flush(0.2), "what the wrong one would get is in the spool"
        assert not bus.stop(1)
    assert len(tries) == 1
    assert [record.message for record in caplog.records].count("spark.headwater.wrong.url is missing") == 1
    assert [each.state for each in bus.report().listeners] == [ListenerState.FAILED, ListenerState.CLOSED]
    assert len(list(tmp_path.iterdir())) == 1, "what it would get is kept for when it is put right"


@pytest.mark.parametrize(
    ("item", "words"),
    [
        ("nobody.knows:It", "there is no module nobody"),
        ("tests.kit.bus.scripts:Script", "is no listener factory|can't be created|no name in it"),
        ("tests.kit.bus.scripts:Nothing", "there is no name in it Nothing"),
        ("job", "no listener can be called job"),
        (
            "odd=tests.kit.bus.scripts:ScriptFactory",
            "spark.headwater.job.listeners: the factory of odd: .* it has neither",
        ),
        ("good=tests.kit.bus.scripts:ScriptFactory", "two listeners are called good"),
    ],
)
def test_a_listener_that_cannot_be_had_is_reported(tmp_path: Path, item: str, words: str) -> None:
    good = Taking()
    keys = {"listeners": "good=tests.kit.bus.scripts:ScriptFactory", "job.listeners": item}
    with bus_of(tmp_path, {"good": lambda _: good, "odd": lambda _: object()}, keys) as bus:
        emitted = emit_all(bus, DRAFTS[:3])
        until(lambda: bus.faults)
        assert re.search(words, str(bus.faults[0]))
        until(lambda: ids(good.records) == ids(emitted))


def test_a_factory_that_fails_otherwise_is_asked_again(tmp_path: Path) -> None:
    listener, tries = Taking(), []

    def late(context: ListenerContext) -> Taking:
        tries.append(context)
        if len(tries) < 4:
            raise OSError("not yet")
        return listener

    with bus_of(tmp_path, {"late": late}) as bus:
        emitted = emit_all(bus, DRAFTS)
        assert bus.flush(60)
        assert ids(listener.records) == ids(emitted)
    assert len(tries) == 4


def test_plain_listeners_alone_need_no_spool(tmp_path: Path) -> None:
    plain = Hearing()
    with bus_of(tmp_path, {"plain": lambda _: plain}) as bus:
        emitted = emit_all(bus, DRAFTS)
        until(lambda: bus.spool is None)
        until(lambda: not list(tmp_path.iterdir()))
        emitted += emit_all(bus, DRAFTS)
        assert bus.flush(60)
        assert plain.events == emitted


def test_no_listener_is_said_and_harms_nobody(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with bus_of(tmp_path, {}) as bus:
        assert bus.emit(Heartbeat())
        assert bus.flush(60)
        assert bus.stop(60)
    assert "names no listener" in caplog.text
    assert list(tmp_path.iterdir()) == []


def test_where_the_spool_cannot_be_it_is_in_a_temporary_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    listener, temporary = Taking(), tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    (tmp_path / "file").write_text("")
    with bus_of(tmp_path / "file" / "spools", {"mine": lambda _: listener}) as bus:
        assert bus.spool is not None
        assert bus.spool.parent.parent == temporary
        assert bus.spool.parent.stat().st_mode & 0o077 == 0
        emitted = emit_all(bus, DRAFTS)
        assert bus.flush(60)
        assert ids(listener.records) == ids(emitted)
    assert "make it writable, or name another" in caplog.text


def test_without_any_place_for_a_spool_plain_listeners_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    plain, durable = Hearing(), Taking()
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "file"))
    with bus_of(tmp_path / "file" / "spools", {"plain": lambda _: plain, "durable": lambda _: durable}) as bus:
        emitted = emit_all(bus, DRAFTS)
        until(lambda: plain.events == emitted)
        until(lambda: bus.faults)
        assert bus.dropped()["listener.durable"] == len(emitted)
    assert "no place for a spool was found" in caplog.text
    assert durable.records == []


def test_no_temporary_directory_is_made_where_none_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    with bus_of(tmp_path / "spools", {"mine": lambda _: Taking()}) as bus:
        emit_all(bus, DRAFTS)
        assert bus.stop(60)
    assert list(temporary.iterdir()) == []


def test_a_temporary_directory_of_somebody_else_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / f"headwater-spool-{os.getuid()}").symlink_to(elsewhere)
    (tmp_path / "file").write_text("")
    with bus_of(tmp_path / "file" / "spools", {"mine": lambda _: Taking()}) as bus:
        assert bus.spool is None
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize(("regex", "is_understood"), [("(?i)word", True), ("[a-z&&[^b]]", False)])
def test_secrets_are_gone_before_there_is_an_event(tmp_path: Path, regex: str, is_understood: bool) -> None:
    draft = JobStarted(
        job_type=JobType.BATCH, configuration=StringMap({"my.word": "hunter2", "plain": "a"}), user="etl"
    )
    with bus_of(tmp_path, {"mine": lambda _: Taking()}, {"spark.redaction.regex": regex}) as bus:
        (event,) = bus.emit(draft)
        assert isinstance(event, JobStarted)
        assert "hunter2" not in event.model_dump_json()
        assert (event.configuration["plain"] == "a") == is_understood
        assert event.user == "etl"
        assert (bus.faults == ()) == is_understood


def test_a_draft_that_no_event_can_be_made_of_is_a_gap(tmp_path: Path) -> None:
    listener = Taking()
    draft = JobStatusChanged(status=JobStatus.RUNNING).model_copy(update={"status": "no such word", "run": RUN})
    with bus_of(tmp_path, {"mine": lambda _: listener}) as bus:
        assert bus.emit(draft) == ()
        assert bus.flush(60)
        (record,) = listener.records
        gap = record.event
        assert isinstance(gap, Gap)
        assert (gap.reason, gap.missed, gap.missed_family, gap.run) == (
            GapReason.CAPTURE_FAILED,
            1,
            EventFamily.JOB,
            RUN,
        )
        assert bus.dropped() == CountMap({"broken.JobStatusChanged": 1})


def test_nothing_is_reported_after_stop(tmp_path: Path) -> None:
    listener = Taking()
    with bus_of(tmp_path, {"mine": lambda _: listener}) as bus:
        emitted = emit_all(bus, DRAFTS)
        assert bus.stop(60)
        assert bus.stop(60)
        assert bus.emit(Heartbeat()) == ()
    assert ids(listener.records) == ids(emitted)


def test_stop_delivers_what_was_reported_before_the_listener_was_made(tmp_path: Path) -> None:
    listener, may_begin = Taking(), threading.Event()

    def slow(_: ListenerContext) -> Taking:
        may_begin.wait(60)
        return listener

    with bus_of(tmp_path, {"mine": slow}) as bus:
        emitted = emit_all(bus, DRAFTS)
        threading.Timer(0.2, may_begin.set).start()
        assert bus.stop(60)
    assert ids(listener.records) == ids(emitted)


def test_events_told_from_many_threads_keep_the_order_of_their_sequences(tmp_path: Path) -> None:
    durable, plain = Taking(), Hearing()
    with bus_of(tmp_path, {"durable": lambda _: durable, "plain": lambda _: plain}) as bus:
        with ThreadPoolExecutor(8) as pool:
            emitted = [event for events in pool.map(lambda _: bus.emit(Heartbeat()), range(400)) for event in events]
        assert bus.flush(60)
        assert [each.event_id.sequence for each in durable.records] == list(range(1, 401))
        assert [each.sequence for each in plain.events] == list(range(1, 401))
        assert len(emitted) == 400


def test_a_forked_child_disturbs_nothing(tmp_path: Path) -> None:
    listener = Taking()
    with bus_of(tmp_path, {"mine": lambda _: listener}) as bus:
        emitted = emit_all(bus, DRAFTS[:5])
        child = os.fork()
        if child == 0:
            is_inert = bus.emit(Heartbeat()) == () and bus.flush(1) and bus.stop(1)
            os._exit(0 if is_inert else 1)
        assert os.waitpid(child, 0)[1] == 0
        emitted += emit_all(bus, DRAFTS[5:])
        assert bus.flush(60)
        assert ids(listener.records) == ids(emitted)


def test_a_child_forked_in_the_middle_of_everything_waits_for_nothing(tmp_path: Path) -> None:
    with bus_of(tmp_path, {"mine": lambda _: Taking()}) as bus:
        inside: Any = bus
        with inside._emitter._writing, inside._stopping:  # as other threads may hold them
            child = os.fork()
            if child == 0:
                signal.alarm(5)
                is_inert = bus.emit(Heartbeat()) == () and bus.stop(1)
                os._exit(0 if is_inert else 1)
        assert os.waitpid(child, 0)[1] == 0


def test_own_gaps_are_about_the_application(tmp_path: Path) -> None:
    listener, job = Taking(), JobName(name="orders")
    with bus_of(tmp_path, {"mine": lambda _: listener}) as bus:
        bus.attribute(job, RUN)
        bus.emit(Heartbeat().model_copy(update={"interval": "soon"}))
        assert bus.flush(60)
        event = listener.records[0].event
        assert isinstance(event, Event)
        assert (event.job, event.run) == (job, RUN)


def test_a_long_import_of_a_plug_in_does_not_hold_up_who_opens_the_bus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "slow_plug_in.py").write_text(
        "from tests.kit.bus import scripts\nscripts.SCRIPTS['gate']()\nfrom tests.kit.bus.scripts import *"
    )
    may_go_on = threading.Event()
    monkeypatch.setitem(SCRIPTS, "gate", lambda *_: may_go_on.wait(60))
    monkeypatch.syspath_prepend(tmp_path)
    keys = {"listeners": "slow=slow_plug_in:ScriptFactory"}
    with bus_of(tmp_path / "spools", {"slow": lambda _: Taking()}, keys) as bus:
        assert "slow_plug_in" not in sys.modules or not hasattr(sys.modules["slow_plug_in"], "ScriptFactory")
        may_go_on.set()
        until(lambda: bus.report().listeners[0].state is ListenerState.RUNNING)
        assert hasattr(sys.modules["slow_plug_in"], "ScriptFactory")


def test_what_is_not_delivered_is_said_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    class Refusing(Taking):
        def handle(self, batch: RecordBatch) -> SpoolPosition | None:
            raise TransientError("away")

    caplog.set_level(logging.WARNING)
    with bus_of(tmp_path, {"mine": lambda _: Refusing()}, options=replace(QUICK, first_backoff=0.05)) as bus:
        emit_all(bus, DRAFTS[:3])
        until(lambda: bus.report().listeners[0].state is ListenerState.PAUSING)
        (report,) = bus.report().listeners
        assert (report.lag, report.durable, report.last_error) == (3, True, "TransientError: away")
        assert report.lag_seconds > 0
        assert not bus.stop(0.3)
    assert "not everything was delivered" in caplog.text
    assert "3 not dealt with" in caplog.text
