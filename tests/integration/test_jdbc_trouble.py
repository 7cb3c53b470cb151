"""The listener that goes straight into the store, where something is wrong: the job is never harmed, nothing is lost,
and it is told what to do."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from sqlalchemy import create_engine, make_url, text

from headwater.errors import ConfigurationError, TransientError
from headwater.lineage.bulk import DeadLetterReason, DeadLetterState
from headwater.lineage.listener import JdbcFactory, JdbcListener
from headwater.lineage.mapping import map_event
from headwater.lineage.rows import RowSet
from headwater.lineage.sql import store_digest
from headwater.lineage.store import Store, open_store
from headwater.local import PostgresServer, Service
from headwater.spi import CheckStatus, EventRecord, RecordBatch, SpoolPosition
from headwater.testing.examples import EXAMPLES
from headwater.testing.listeners import batch, from_the_future
from headwater.testing.memory import MemoryContext
from tests.kit.processes import children_of
from tests.kit.waiting import PATIENCE, attempts

pytestmark = pytest.mark.slow


@pytest.fixture
def executor() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as made:
        yield made


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/store.db"


def context(executor: ThreadPoolExecutor, keys: Mapping[str, str]) -> MemoryContext:
    return MemoryContext("jdbc", {"timeout": f"{PATIENCE:g} s", **keys}, executor)


def listener(executor: ThreadPoolExecutor, url: str) -> tuple[JdbcListener, MemoryContext]:
    given = context(executor, {"url": url})
    return JdbcFactory().create(given), given


def answer_of(listener: JdbcListener) -> SpoolPosition | None:
    return listener.flush(PATIENCE)


def deliver(listener: JdbcListener, given_batch: RecordBatch) -> None:
    """Hand the batch over until the store has it: before that the listener may still speak of what was wrong."""
    for _ in attempts("a store that takes it", PATIENCE):
        with suppress(TransientError):
            listener.handle(given_batch)
            if listener.flush(PATIENCE) == given_batch.end:
                return


def raised_by(call: Callable[[], object]) -> TransientError:
    with pytest.raises(TransientError) as raised:
        _again_and_again(call)
    return raised.value


def _again_and_again(call: Callable[[], object]) -> None:
    for _ in attempts("an error", PATIENCE):
        call()


def letters_in(store: Store) -> dict[int, tuple[DeadLetterReason, str]]:
    return {
        letter.position: (letter.reason, letter.error) for _, letter in store.bulk.dead_letters(DeadLetterState.WAITING)
    }


def test_a_batch_is_in_the_store_when_it_is_answered(executor: ThreadPoolExecutor, url: str) -> None:
    made, _ = listener(executor, url)
    given_batch = batch(EXAMPLES)
    made.handle(given_batch)
    assert answer_of(made) == given_batch.end
    memory = RowSet()
    for event in EXAMPLES:
        memory.merge(map_event(event))
    with open_store(url) as store, store.engine.connect() as connection:
        assert store_digest(connection) == memory.digest()
        stored = connection.execute(text("SELECT source, stored_until FROM ingest_progress")).all()
    assert {source for source, _ in stored} == {"jdbc"}
    assert made.close(PATIENCE)


def test_what_is_no_event_is_kept_as_a_dead_letter(executor: ThreadPoolExecutor, url: str) -> None:
    made, given = listener(executor, url)
    first, second, third, fourth = batch(EXAMPLES[:4]).records
    broken = EventRecord(second.position, second.data[:-3], second.key, second.headers, second.decode)
    records = [first, broken, from_the_future(third), fourth]
    given_batch = type(batch(EXAMPLES[:1]))(records)
    made.handle(given_batch)
    assert answer_of(made) == given_batch.end
    assert made.close(PATIENCE)
    with open_store(url) as store:
        found = letters_in(store)
        assert {position: reason for position, (reason, _) in found.items()} == {
            second.event_id.sequence: DeadLetterReason.UNDECODABLE,
            third.event_id.sequence: DeadLetterReason.UNKNOWN,
        }
        (kept,) = [each for _, each in store.bulk.dead_letters() if each.reason is DeadLetterReason.UNDECODABLE]
    assert (kept.data, kept.key, kept.event) == (broken.data, broken.key, broken.event_id)
    assert [cause for cause, _ in given.problems] == ["refused"]


def test_what_the_database_refuses_is_kept_as_a_dead_letter(
    executor: ThreadPoolExecutor, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A database that takes fewer texts than this one would: here by a rule on a table."""
    with open_store(url) as store, store.engine.begin() as connection:
        connection.exec_driver_sql(
            "CREATE TRIGGER narrow BEFORE INSERT ON failed_statements "
            "BEGIN SELECT RAISE(ABORT, 'constraint failed: too narrow'); END"
        )
    made, given = listener(executor, url)
    given_batch = batch(EXAMPLES)
    made.handle(given_batch)
    assert answer_of(made) == given_batch.end
    assert made.close(PATIENCE)
    failed = [event for event in EXAMPLES if event.kind == "StatementFailed"]
    with open_store(url) as store:
        assert {reason for reason, _ in letters_in(store).values()} == {DeadLetterReason.REFUSED}
        assert set(letters_in(store)) == {event.sequence for event in failed}
        assert all("too narrow" in words for _, words in letters_in(store).values())
    ((cause, words),) = given.problems
    assert cause == "refused"
    assert "too narrow" in words


@pytest.mark.database
def test_a_wrong_password_is_reported_and_mended_while_the_job_runs(
    executor: ThreadPoolExecutor, postgres: Service, tmp_path: Path
) -> None:
    right = make_url(postgres.address)
    secret = tmp_path / "password"
    secret.write_text("error")
    name = f"trouble_{os.getpid()}"
    engine = create_engine(right, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    bare = right._replace(password=None, database=name).render_as_string()
    given = context(executor, {"url": bare, "password-file": str(secret)})
    made = JdbcFactory().create(given)
    given_batch = batch(EXAMPLES)
    made.handle(given_batch)
    error = raised_by(lambda: made.flush(1))
    assert "password" in str(error)
    assert given.problems[0][0] == "access"
    assert "error" not in str(error).replace("was wrong", "")
    secret.write_text(str(right.password))
    deliver(made, given_batch)
    assert made.close(PATIENCE)
    with engine.connect() as connection:
        connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
    engine.dispose()


@pytest.mark.database
def test_a_server_that_falls_silent_is_given_up_after_its_time(executor: ThreadPoolExecutor) -> None:
    with PostgresServer(durable=False) as server:
        open_store(server.address).close()  # a second may be too short for that
        given = MemoryContext("jdbc", {"url": server.address, "timeout": "3 s"}, executor)
        made = JdbcFactory().create(given)
        half = len(EXAMPLES) // 2
        first, second = batch(EXAMPLES[:half]), batch(EXAMPLES[half:], 1_000)
        deliver(made, first)
        assert server.pid is not None
        stopped = [server.pid, *children_of(server.pid)]
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        try:
            made.handle(second)
            error = raised_by(lambda: made.flush(0.2))
        finally:
            for pid in stopped:
                os.kill(pid, signal.SIGCONT)
        assert "try again" in str(error)
        deliver(made, second)
        assert made.close(PATIENCE)


def test_who_tells_more_than_the_store_takes_waits_in_the_spool(
    executor: ThreadPoolExecutor, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headwater.lineage.listener.listener._MAX_BYTES", 10_000)
    monkeypatch.setattr("headwater.lineage.listener.listener._FULL_WAIT_SECONDS", 0.05)
    goes_on = threading.Event()
    blocked = [executor.submit(goes_on.wait) for _ in range(4)]
    made, _ = listener(executor, url)
    given_batch = batch(list(EXAMPLES) * 3)
    made.handle(given_batch)
    error = raised_by(lambda: made.handle(given_batch))
    assert "delivered again" in str(error)
    goes_on.set()
    assert all(each.result() for each in blocked)
    made.flush(PATIENCE)
    made.handle(given_batch)
    assert answer_of(made) == given_batch.end
    assert made.close(PATIENCE)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({}, "spark.headwater.jdbc.url: isn't there"),
        ({"url": "jdbc:oracle:thin:@host"}, "jdbc:postgresql://"),
        ({"url": "jdbc:sqlite:/x.db", "usrname": "me"}, "spark.headwater.jdbc.username"),
        ({"url": "jdbc:sqlite:/x.db", "password": "secret", "password-file": "/y"}, "password"),
    ],
)
def test_what_is_configured_wrongly_is_reported_at_once(
    executor: ThreadPoolExecutor, keys: dict[str, str], words: str
) -> None:
    with pytest.raises(ConfigurationError) as raised:
        JdbcFactory().create(context(executor, keys))
    assert words in str(raised.value)
    assert "secret" not in str(raised.value)


def test_the_doctor_finds_a_store_that_works(executor: ThreadPoolExecutor, url: str) -> None:
    found = list(JdbcFactory().diagnose(context(executor, {"url": url})))
    steps = [(each.step, each.status is not CheckStatus.ERROR) for each in found]
    assert steps == [(step, True) for step in ("address", "store", "writing", "reading", "dead letters")]


def test_the_doctor_says_what_is_wrong(executor: ThreadPoolExecutor, tmp_path: Path) -> None:
    found = list(JdbcFactory().diagnose(context(executor, {"url": f"jdbc:sqlite:{tmp_path}/nowhere/store.db"})))
    assert [each.step for each in found] == ["address", "store"]
    assert found[-1].status is CheckStatus.ERROR
    assert "make it" in found[-1].message
