"""The life of a dead letter, on Kafka and PostgreSQL: it holds nobody up, no kill and no outage loses it, and once its
fault is mended a retry stores it, and it is gone.

Other tests look at one moment of it: how it is made, listed, retried in SQLite, or removed.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from headwater.cli.app import main
from headwater.consumers.writer import record_reader
from headwater.events.envelope import Event
from headwater.lineage.bulk import DeadLetterReason
from headwater.lineage.mapping import map_event
from headwater.lineage.store import Store, open_store
from headwater.local import KafkaServer
from tests.kit.events.written import CODEC, commits, digest_by_law, digest_in, on_topic, produced
from tests.kit.stores import database_on
from tests.kit.topics import new_topic
from tests.kit.waiting import PATIENCE, until
from tests.kit.writers.process import writer_process

pytestmark = [pytest.mark.slow, pytest.mark.kafka, pytest.mark.database]

NO_EVENT = b"no event"
OTHERS = "datname = current_database() AND pid <> pg_backend_pid()"
"""All sessions of the database but the one that asks."""


@pytest.fixture
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with database_on("postgres", request, tmp_path) as url:
        yield url.render_as_string(hide_password=False)


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with open_store(url) as opened:
        yield opened


@pytest.fixture
def topic(kafka: KafkaServer) -> str:
    return new_topic(kafka.address, "letters", 3)


def letters_in(store: Store) -> dict[DeadLetterReason, bytes]:
    return {letter.reason: letter.data for _, letter in store.bulk.dead_letters(None)}


def test_a_poisoned_record_is_stored_and_gone_once_the_writer_is_mended(
    kafka: KafkaServer, topic: str, url: str, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    poisoned, *others = commits(20)
    data = [CODEC.encode(each) for each in (others[0], poisoned, *others[1:])]
    produced(kafka, topic, [*data[:5], NO_EVENT, *data[5:]])

    def broken(event: Event, append_time: int | None = None) -> Any:
        if event.event_id == poisoned.event_id:
            raise OverflowError("this version can't map it")
        return map_event(event, append_time)

    def give_up(*_: object) -> None:
        raise RuntimeError("it is mapped event by event")

    flags = ["--bus", f"kafka://{kafka.address}/{topic}", "--store", url, "--until-end"]
    with monkeypatch.context() as patched:
        patched.setattr(record_reader, "map_event", broken)
        patched.setattr(record_reader.RecordReader, "_gathered", give_up)
        assert main(["writer", "run", *flags]) == 0, "neither of them stops the writer"
        assert letters_in(store) == {DeadLetterReason.INVALID: data[1], DeadLetterReason.UNDECODABLE: NO_EVENT}
        assert main(["dead-letter", "retry", "--store", url, "--all"]) == 1
        assert len(letters_in(store)) == 2, "no retry loses one"
    assert main(["dead-letter", "retry", "--store", url, "--all"]) == 1, "one is no event, whoever reads it"
    assert letters_in(store) == {DeadLetterReason.UNDECODABLE: NO_EVENT}
    assert digest_in(store) == digest_by_law([each for each in on_topic(kafka, topic) if each[0] != NO_EVENT])
    assert main(["writer", "run", *flags]) == 0
    assert letters_in(store) == {DeadLetterReason.UNDECODABLE: NO_EVENT}, "nothing is read again"


def test_a_writer_that_is_killed_between_a_letter_and_its_offset_leaves_it_to_the_next(
    kafka: KafkaServer, topic: str, url: str, store: Store
) -> None:
    """It is killed within the transaction, and the next one meets a database whose sessions end under it."""
    data = [CODEC.encode(each) for each in commits(10)]
    produced(kafka, topic, [*data[:5], NO_EVENT, *data[5:]])
    with store.engine.connect() as connection, writer_process(kafka, topic, url) as process:
        connection.execute(text("SET LOCAL idle_in_transaction_session_timeout = 0"))
        connection.execute(text("LOCK TABLE headwater.consumer_offsets IN SHARE MODE"))
        until(lambda: waiting_sessions(store), "a writer that has written the letter, and not its offset", PATIENCE)
        process.send_signal(signal.SIGKILL)
        process.wait(PATIENCE)
        connection.rollback()
    assert letters_in(store) == {}, "it was no transaction yet"
    with writer_process(kafka, topic, url, "--until-end") as process:
        with store.engine.begin() as connection:
            connection.execute(text(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {OTHERS}"))
        assert process.wait(PATIENCE) == 0
    assert letters_in(store) == {DeadLetterReason.UNDECODABLE: NO_EVENT}
    assert digest_in(store) == digest_by_law([each for each in on_topic(kafka, topic) if each[0] != NO_EVENT])


def waiting_sessions(store: Store) -> int:
    """How many sessions wait for a lock."""
    with store.engine.connect() as connection:
        query = text(f"SELECT count(*) FROM pg_stat_activity WHERE {OTHERS} AND wait_event_type = 'Lock'")
        return int(connection.execute(query).scalar_one())
