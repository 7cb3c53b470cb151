"""A broker and a PostgreSQL, each behind a proxy of its own, and what tests do to the database."""

from __future__ import annotations

import os
import signal
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from sqlalchemy import Engine, NullPool, create_engine, make_url
from sqlalchemy.exc import OperationalError

from headwater.lineage.store import open_store
from headwater.local import PostgresServer
from tests.kit.faults.tcp_proxy import CLEAR, Proxy
from tests.kit.kafka.stage import Stage, stage
from tests.kit.lineage.backups import Backup, back_up
from tests.kit.processes import children_of, is_alive
from tests.kit.waiting import PATIENCE, until

BROKER = {
    # A writer that was killed is missed soon.
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "2000",
    "group.consumer.min.heartbeat.interval.ms": "300",
    "group.consumer.heartbeat.interval.ms": "500",
}


@dataclass
class Database:
    """Writers come through the proxy, tests don't."""

    proxy: Proxy
    server: PostgresServer
    template: str
    is_frozen: bool = False

    def own(self) -> str:
        """A new database with the tables of a store in it: what it is called."""
        name = f"round_{uuid4().hex[:12]}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {self.template}")
        return name

    def drop(self, name: str) -> None:
        for each in (name, f"{name}_copy", f"{name}_lost"):
            self.execute(f"DROP DATABASE IF EXISTS {each} WITH (FORCE)")

    def url(self, name: str) -> str:
        """As writers reach it."""
        return make_url(self.server.address).set(port=self.proxy.port, database=name).render_as_string(False)

    def engine(self, name: str) -> Engine:
        """Past the proxy, with the store's schema first."""
        return create_engine(
            make_url(self.server.address).set(database=name),
            connect_args={"options": "-c search_path=headwater"},
            pool_pre_ping=True,
        )

    def execute(self, statement: str) -> None:
        server = create_engine(self.server.address, isolation_level="AUTOCOMMIT", poolclass=NullPool)
        with server.connect() as connection:
            connection.exec_driver_sql(statement)

    def kill(self) -> None:
        """kill -9 of all of its processes at once."""
        sessions = self._children()
        self.server.kill()
        for each in sessions:
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
        until(lambda: not any(map(is_alive, sessions)), "the end of the database's processes", PATIENCE)

    def kill_session(self) -> None:
        """kill -9 of one that serves a writer: the server takes all sessions down and recovers."""
        for each in self._children():
            if b"headwater" in _words(each) or b"round_" in _words(each):
                with suppress(ProcessLookupError):
                    os.kill(each, signal.SIGKILL)
                return

    def freeze(self) -> None:
        self.is_frozen = True
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)
        self.is_frozen = False

    def back_up(self, name: str) -> Backup | None:
        """None where the database isn't there."""
        if not self.is_frozen:
            with suppress(OperationalError):
                return back_up(make_url(self.server.address).set(database=name))
        return None

    def set_back(self, backup: Backup) -> bool:
        """Return whether the database was there."""
        if not self.is_frozen:
            with suppress(OperationalError):
                backup()
                return True
        return False

    def admit_all(self, name: str) -> None:
        """Whoever makes a backup is alone for a moment; if the database was killed then, it would stay so."""
        self.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")

    def come_back(self) -> None:
        """Whatever was done to it is undone."""
        self.proxy.turn(CLEAR)
        self.thaw()
        if not self.server.running:
            self.server.start()
        until(self._answers, "the database, which recovers", PATIENCE, 0.05)

    def _answers(self) -> bool:
        """Whether it has recovered: a server whose session was killed admits nobody meanwhile."""
        with suppress(OperationalError):
            self.execute("SELECT 1")
            return True
        return False

    def _signal(self, which: signal.Signals) -> None:
        if self.server.running:
            for each in (self.server.pid, *self._children()):
                with suppress(ProcessLookupError):
                    os.kill(each, which)

    def _children(self) -> list[int]:
        return children_of(self.server.pid)


@dataclass
class WriterStage:
    bus: Stage
    database: Database

    def come_back(self) -> None:
        self.bus.come_back()
        self.database.come_back()


@contextmanager
def writer_stage() -> Generator[WriterStage]:
    with stage(properties=BROKER) as bus, Proxy() as proxy, PostgresServer(durable=False) as server:
        address = make_url(server.address)
        proxy.target = ("127.0.0.1", address.port or 0)
        database = Database(proxy, server, "template_of_rounds")
        database.execute(f"CREATE DATABASE {database.template}")
        open_store(address.set(database=database.template).render_as_string(False)).close()
        yield WriterStage(bus, database)


def _words(pid: int) -> bytes:
    """What a process of the server calls itself: its database is named in it."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
