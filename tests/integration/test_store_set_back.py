"""A database that loses its newest rows while a writer runs: in the end nothing is lost, and nothing is there twice."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import URL

from headwater.consumers.sources import local_log
from headwater.consumers.sources.local_log import LocalLogSource
from headwater.consumers.writer.offsets import OffsetReader
from headwater.consumers.writer.processes.worker_process import WorkerDiedError
from headwater.journal import LocalLog
from headwater.lineage.bulk import WriteBatch, WriterInstant
from headwater.lineage.store import Store, StoreOptions, open_store
from headwater.lineage.store.status import read_status
from headwater.local import KafkaServer
from tests.kit.events.written import digest_by_law, digest_in, on_topic, produced
from tests.kit.lineage.backups import back_up
from tests.kit.stores import DATABASES, database_on
from tests.kit.topics import new_topic
from tests.kit.waiting import PATIENCE, until
from tests.kit.writers.coordinated import Coordinator, Hook, nothing, stand_ins
from tests.kit.writers.set_back import EVENTS, GROUP, append, law, plain, running, stored, write_all

pytestmark = [pytest.mark.slow, pytest.mark.sample(1)]


@pytest.fixture(params=DATABASES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[URL]:
    with database_on(request.param, request, tmp_path) as url:
        yield url


@pytest.fixture
def store(url: URL) -> Iterator[Store]:
    with open_store(url.render_as_string(hide_password=False)) as opened:
        yield opened


@pytest.fixture
def log(tmp_path: Path) -> LocalLog:
    return LocalLog.open(tmp_path / "log")


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of an idle log is looked for all the time, and written into the store."""
    monkeypatch.setattr(local_log, "END_CHECK_SECONDS", 0.05)


def coordinated(log: LocalLog, store: Store, after: Hook = nothing) -> Coordinator:
    offsets = OffsetReader({"": store.bulk}, GROUP)
    source = LocalLogSource(log.directory, GROUP, offsets)
    more: dict[str, Any] = {"marks": offsets.marks[""], "start": stand_ins(after=after)}
    return Coordinator(source, store.bulk, store, 2, most=7, idle=0.02, interval=0.01, **more)


def test_a_writer_reads_again_what_its_database_has_lost(
    url: URL, log: LocalLog, store: Store, often: None, caplog: pytest.LogCaptureFixture
) -> None:
    """The database goes back while nothing comes, and the writer notices it by itself: 200 events are stored, 100 lost,
    and the caches have tables of the lost ones."""
    writer = plain(log, store)
    append(log, 0, 100)
    with running(writer):
        until(lambda: stored(store) == 100)
        set_back = back_up(url)
        append(log, 100, 200)
        until(lambda: stored(store) == 200)
        set_back()
        until(lambda: writer.metrics.set_backs and stored(store) == 200)
        append(log, 200, 300)
        until(lambda: stored(store) == 300)
    assert digest_in(store) == law(log)
    assert writer.metrics.set_backs == 1
    assert read_status(StoreOptions.at(url.render_as_string(hide_password=False))).set_back is not None
    assert "the store lost transactions" in caplog.text
    assert "set_backs_total 1" in "\n".join(writer.metrics.render())


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_a_file_that_is_replaced_is_the_database_from_then_on(
    url: URL, log: LocalLog, store: Store, often: None
) -> None:
    """A connection that is open has the file that was replaced: what is written to it is lost."""
    writer = plain(log, store)
    append(log, 0, 100)
    with running(writer):
        until(lambda: stored(store) == 100)
        set_back = back_up(url, replace=True)
        append(log, 100, 200)
        until(lambda: stored(store) == 200)
        set_back()
        with open_store(url.render_as_string()) as other:
            until(lambda: writer.metrics.set_backs)
            append(log, 200, 300)
            until(lambda: stored(other) == 300)
    with open_store(url.render_as_string()) as other:
        assert digest_in(other) == law(log)


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_the_next_writer_begins_where_the_database_is(url: URL, log: LocalLog, store: Store) -> None:
    """The database goes back between two writers. The log's own cursor is ahead of it then."""
    for begin, end in ((0, 100), (100, 200)):
        append(log, begin, end)
        set_back = back_up(url) if begin else None
        write_all(log, store)
        assert stored(store) == end
    assert set_back is not None
    set_back()
    append(log, 200, 300)
    write_all(log, store)
    assert digest_in(store) == law(log)


@pytest.mark.sample(1, keep=("postgres",))
@pytest.mark.parametrize("url", DATABASES[1:], indirect=True)
def test_a_coordinated_writer_reads_again_what_its_database_has_lost(
    url: URL, log: LocalLog, store: Store, often: None
) -> None:
    writer = coordinated(log, store)
    append(log, 0, 100)
    with running(writer):
        until(lambda: stored(store) == 100)
        set_back = back_up(url)
        append(log, 100, 200)
        until(lambda: stored(store) == 200)
        set_back()
        until(lambda: writer.metrics.set_backs and stored(store) == 200)
        append(log, 200, 300)
        until(lambda: stored(store) == 300)
    assert digest_in(store) == law(log)


@pytest.mark.parametrize("url", DATABASES[1:2], indirect=True)
@pytest.mark.parametrize("dies", [False, True], ids=["its process lives", "its process dies with them"])
def test_rows_that_are_lost_before_their_instant_is_completed_are_written_again(
    url: URL, log: LocalLog, store: Store, *, dies: bool
) -> None:
    """The offsets are where the writer left them then; only its other connections know what is missing."""
    made: list[Callable[[], None]] = []

    def lose(name: str) -> None:
        if made and name.startswith("bucket"):
            made.pop()()
            if dies:
                raise WorkerDiedError("killed")

    writer = coordinated(log, store, lose)
    append(log, 0, 100)
    with running(writer):
        until(lambda: stored(store) == 100)
        # The first thing that is written when processes are begun anew: that this one was left.
        detail = json.dumps({"group": GROUP, "host": "elsewhere", "at": 0})
        store.bulk.merge(WriteBatch(instants=[WriterInstant(UUID(int=1), 1, detail=detail)]))
        made.append(back_up(url))
        append(log, 100, 200)
        until(lambda: writer.metrics.set_backs and stored(store) == 200)
    assert digest_in(store) == law(log)
    assert writer.metrics.set_backs


@pytest.mark.kafka
@pytest.mark.parametrize("url", DATABASES[1:2], indirect=True)
@pytest.mark.parametrize("flags", [(), ("--processes", "2")], ids=["plain", "coordinated"])
def test_a_command_reads_a_topic_again(
    kafka: KafkaServer, url: URL, store: Store, flags: tuple[str, ...], tmp_path: Path
) -> None:
    """What the command puts together, and the way of Kafka: its client has to go back, and so has the group."""
    topic = new_topic(kafka.address, "set-back", 3, {})
    produced(kafka, topic, EVENTS[:100])
    bus, into = f"kafka://{kafka.address}/{topic}", url.render_as_string(hide_password=False)
    command = [sys.executable, "-m", "headwater.cli", "writer", "run", "--bus", bus, "--store", into, "--group", topic]
    with (tmp_path / "err").open("w") as err, subprocess.Popen([*command, *flags], stderr=err) as process:
        try:
            until(lambda: stored(store) == 100)
            set_back = back_up(url)
            produced(kafka, topic, EVENTS[100:200])
            until(lambda: stored(store) == 200)
            set_back()
            produced(kafka, topic, EVENTS[200:])
            # Each member leaves the group and joins it again: where a leave gets lost, Kafka waits for it for 45 s.
            until(lambda: stored(store) == 300, (tmp_path / "err").read_text, 2 * PATIENCE + 30)
        finally:
            process.terminate()
            process.wait(PATIENCE)
    assert digest_in(store) == digest_by_law(on_topic(kafka, topic))
    assert "the store lost transactions" in (tmp_path / "err").read_text()
