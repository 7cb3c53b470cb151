"""A round of faults with writers: producers tell, writers keep a store, things happen to all of them, to the broker,
the database and the network; and when all is quiet the store has what was reported, each event once."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any, Final

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from sqlalchemy import Connection, Engine, delete, select
from sqlalchemy.exc import OperationalError

from headwater.lineage.bulk.marks import bump_epoch
from headwater.lineage.rows import KINDS
from headwater.lineage.sql.tables import table_of
from headwater.lineage.sql.writer_tables import DEAD_LETTERS, OFFSETS
from tests.kit.faults.spark_round import SparkVictim
from tests.kit.faults.tcp_proxy import CLEAR, Weather
from tests.kit.kafka.conf import IMPATIENT
from tests.kit.kafka.plan import Act
from tests.kit.kafka.round import Round
from tests.kit.kafka.topic_check import Verdict
from tests.kit.kafka.topic_copies import Copy, copies_on
from tests.kit.kafka.victims import Victim
from tests.kit.lineage.backups import Backup
from tests.kit.topics import ends_of
from tests.kit.waiting import attempts, until
from tests.kit.writers.plan import SESSION_SECONDS, WRITERS, WriterPlan
from tests.kit.writers.process import PROGRAM, WriterProcess
from tests.kit.writers.stage import WriterStage
from tests.kit.writers.store_check import check_store, state_of

PATIENCE: Final = 90.0
_DATABASE_LINES: Final = 2_000
GROUP: Final = "writers"
SETTINGS: Final = {
    **{key: value for key, value in IMPATIENT.items() if not key.startswith("request.")},
    "topic.metadata.refresh.interval.ms": "1000",
    "debug": "cgrp",
}
"""Who has a partition, and what a group waits for, stands in the log of a round that failed."""
CLASSIC: Final = {
    "session.timeout.ms": f"{SESSION_SECONDS * 1_000:.0f}",
    "heartbeat.interval.ms": "300",
    "max.poll.interval.ms": "30000",
}
"""A client that joins waits for an answer for as long as the last of these, though the connection has gone silent."""
BY_BROKERS: Final = {"group.protocol": "consumer"}
"""How soon a member is missed is said to the brokers there."""


@dataclass(frozen=True)
class WriterOutcome:
    """A round in which all was right."""

    verdict: Verdict
    rows: int
    starts: int
    """Of writers."""
    seconds: float
    settling: float
    """Seconds of those, from when all was well again until everything was stored."""
    longest_tell: float
    set_backs: int
    """How often the database lost its newest rows."""


class WriterRound(Round):
    """One round in a folder of its own, on a topic of its own, into a database of its own."""

    def __init__(
        self,
        plan: WriterPlan,
        stage: WriterStage,
        folder: Path,
        program: Sequence[str] = PROGRAM,
    ) -> None:
        super().__init__(plan.producers, stage.bus, folder)
        self.of_writers, self.database = plan, stage.database
        self._program = program
        self._name = ""
        self._settings = {**SETTINGS, **(BY_BROKERS if plan.is_by_brokers else CLASSIC)}
        self._writers: list[WriterProcess] = []
        self._guest: Consumer | None = None
        self._has_forgotten = False
        self._backup: Backup | None = None
        self.set_backs = 0
        self._starting_database: Thread | None = None
        self._broker_said = 0

    def play(self) -> WriterOutcome:
        """An AssertionError says what is wrong."""
        began = time.monotonic()
        self._begin()
        engine = self.database.engine(self._name)
        try:
            longest = self._live_through(engine)
            self._ship()
            copies = copies_on(self.stage.config(), self.topic)
            verdict = self._check(copies)
            if self._has_forgotten:
                self._tell_again(copies)
            quiet = time.monotonic()
            self._settle(engine)
            settling = time.monotonic() - quiet
            self._stop_writers()
            rows = self._check_store(engine, copies)
        except BaseException:
            self._keep_logs()
            raise
        finally:
            engine.dispose()
            self._end()
        self.database.drop(self._name)
        self.stage.delete(self.topic)
        starts = sum(each.starts for each in self._writers)
        seconds = time.monotonic() - began
        return WriterOutcome(verdict, rows, starts, seconds, settling, longest, self.set_backs)

    def _begin(self) -> None:
        self.stage.come_back()
        self.database.come_back()
        self._broker_said = self.stage.broker.log.stat().st_size
        self.stage.create(self.topic, partitions=self.plan.partitions, message_timestamp_type="LogAppendTime")
        self._name = self.database.own()
        bus = f"kafka://{self.stage.address}/{self.topic}"
        place = ["--bus", bus, "--store", self.database.url(self._name), "--group", GROUP]
        processes = "2" if self.of_writers.is_coordinated else "1"
        batch = str(self.of_writers.batch)
        flags = [*place, "--batch", batch, "--processes", processes, "--log-level", "debug"]
        for number in range(WRITERS):
            writer = WriterProcess(self.folder / f"writer{number}.log", flags, self._settings, self._program)
            self._writers.append(writer)
            writer.start()

    def _live_through(self, engine: Engine) -> float:
        """Until nothing happens any more, and producers have ended."""
        try:
            self._start_first()
            self._wait_for_rows(engine)
            self._act(self.of_writers.acts)
            self._come_back()
            return self._end_victims()
        finally:
            self._kill_victims()
            self._come_back()

    def _wait_for_rows(self, engine: Engine) -> None:
        """Faults before the first of them would meet programs that still begin. It may be that the first producer has
        emitted all by then, and that it lies in its spool."""
        producers: list[Victim | SparkVictim] = [*self._drivers, *self.victims.values()]
        until(
            lambda: self._stored(engine) or not any(each.is_running for each in producers),
            "something that is stored",
            PATIENCE,
            0.02,
        )

    def _come_back(self) -> None:
        super()._come_back()
        if self._starting_database is not None:
            self._starting_database.join()
            self._starting_database = None
        self.database.come_back()
        self.database.admit_all(self._name)
        self._send_guest_away()
        for writer in self._writers:
            writer.thaw()

    def _settle(self, engine: Engine) -> None:
        """Whoever ended is started again, and then all is stored that is on the topic."""
        ends = ends_of(self.stage.config(), self.topic)
        words = lambda: f"stored up to {self._stored(engine)}, and the topic ends at {ends}"  # noqa: E731
        for _ in attempts(words, PATIENCE, 0.05):
            if self._stored(engine) == ends:
                break
            for writer in self._writers:
                writer.look_after()
                writer.start()

    def _stored(self, engine: Engine) -> dict[int, int]:
        with engine.connect() as connection:
            chosen = select(OFFSETS.c.partition_number, OFFSETS.c.next_offset)
            return {number: following for number, following in connection.execute(chosen) if following}

    def _stop_writers(self) -> None:
        for writer in self._writers:
            writer.stop()
        faults = [fault for writer in self._writers for fault in writer.faults]
        assert not faults, "writers: " + "; ".join(faults)

    def _check_store(self, engine: Engine, copies: Sequence[Copy]) -> int:
        rows = check_store(engine, state_of(each.value for each in copies))
        with engine.connect() as connection:
            letters = connection.execute(select(DEAD_LETTERS.c.error)).scalars().all()
        assert not letters, f"{len(letters)} dead letters, and there should be none: {letters[:3]}"
        return rows

    def _keep_logs(self) -> None:
        """Writers' own lie in the folder already; a broker's is that of all rounds, and goes with it."""
        with self.stage.broker.log.open("rb") as log:
            log.seek(self._broker_said)
            (self.folder / "broker.log").write_bytes(log.read())
        (self.folder / "database.log").write_text(self.database.server.log_tail(_DATABASE_LINES))

    def _end(self) -> None:
        self._send_guest_away()
        for writer in self._writers:
            writer.kill()

    def do(self, act: Act) -> None:
        own = _DO.get(act.what)
        if own is None:
            super().do(act)
        else:
            own(self, act)

    def writer(self, act: Act) -> WriterProcess:
        return self._writers[act.victim]

    def start_database(self) -> None:
        """On another thread, as the broker is: nothing waits for it but the next one who starts it."""
        if self._starting_database is not None:
            self._starting_database.join()
        server = self.database.server
        self._starting_database = Thread(target=server.start, name="starting-database")
        self._starting_database.start()

    def kill_database(self) -> None:
        if self._starting_database is not None:
            self._starting_database.join()
        self.database.kill()

    def back_up(self) -> None:
        if self._backup is None:
            self._backup = self.database.back_up(self._name)

    def set_back(self) -> None:
        """What was stored since the backup is gone, offsets too: each writer has to notice it by itself."""
        backup, self._backup = self._backup, None
        if backup is not None:
            self.set_backs += self.database.set_back(backup)

    def turn(self, weather: Weather | None) -> None:
        """What was swallowed isn't given again: those connections are of no use any more."""
        self.database.proxy.turn(weather or CLEAR)
        if weather is None:
            self.database.proxy.cut()

    def invite(self) -> None:
        """Another member takes partitions, and says of each that nothing of it was read: that is nobody's affair."""

        def assigned(client: Consumer, partitions: list[TopicPartition]) -> None:
            client.incremental_assign(partitions)
            places = [TopicPartition(each.topic, each.partition, 0) for each in partitions]
            with suppress(KafkaException):
                client.commit(offsets=places, asynchronous=True)

        self._send_guest_away()
        settings: dict[str, Any] = {**self.stage.config(), **self._settings, "enable.auto.commit": False}
        if not self.of_writers.is_by_brokers:
            settings["partition.assignment.strategy"] = "cooperative-sticky"
        settings.pop("debug")
        guest = Consumer({**settings, "group.id": GROUP, "log_level": 0})
        guest.subscribe([self.topic], on_assign=assigned)
        guest.poll(0.2)
        self._guest = guest

    def send_guest_away(self) -> None:
        self._send_guest_away()

    def _send_guest_away(self) -> None:
        if self._guest is not None:
            with suppress(KafkaException):
                self._guest.poll(0.1)
            # while no broker answers it can wait for ever, and the broker comes back by a later act of this round
            leaving = Thread(target=self._guest.close, name="guest", daemon=True)
            leaving.start()
            leaving.join(SESSION_SECONDS)
            self._guest = None

    def forget(self) -> None:
        """Rows that are never deleted are gone, as after a restore: events that come again bring them back, if nobody
        believes that they are there still. Where the database isn't there, nobody forgets."""
        engine = self.database.engine(self._name)
        with suppress(OperationalError), engine.begin() as connection:
            connection.exec_driver_sql("SET LOCAL lock_timeout = '2s'")
            connection.exec_driver_sql("SET LOCAL statement_timeout = '5s'")
            _forget_all(connection)
        self._has_forgotten = True
        engine.dispose()

    def _tell_again(self, copies: Sequence[Copy]) -> None:
        producer = Producer({**self.stage.config(), "enable.idempotence": True})
        for each in copies:
            headers: Any = list(each.headers.items())
            producer.produce(self.topic, each.value, each.key, each.partition, headers=headers)
            producer.poll(0)
        assert producer.flush(PATIENCE) == 0


def _forget_all(connection: Connection) -> None:
    bump_epoch(connection)
    for kind in KINDS:
        if not kind.has_times and not kind.has_bits:
            connection.execute(delete(table_of(kind)))


_DO: Final[Mapping[str, Callable[[WriterRound, Act], object]]] = {
    "kill writer": lambda each, act: each.writer(act).kill(),
    "kill process": lambda each, act: each.writer(act).kill_process(),
    "start writer": lambda each, act: each.writer(act).start(),
    "stop writer": lambda each, act: each.writer(act).stop(),
    "freeze writer": lambda each, act: each.writer(act).freeze(),
    "thaw writer": lambda each, act: each.writer(act).thaw(),
    "kill database": lambda each, _: each.kill_database(),
    "start database": lambda each, _: each.start_database(),
    "kill session": lambda each, _: each.database.kill_session(),
    "freeze database": lambda each, _: each.database.freeze(),
    "thaw database": lambda each, _: each.database.thaw(),
    "cut database": lambda each, _: each.database.proxy.cut(),
    "weather of the database": lambda each, act: each.turn(act.weather),
    "clear the database's": lambda each, _: each.turn(None),
    "back up database": lambda each, _: each.back_up(),
    "set database back": lambda each, _: each.set_back(),
    "guest comes": lambda each, _: each.invite(),
    "guest goes": lambda each, _: each.send_guest_away(),
    "forget": lambda each, _: each.forget(),
}
