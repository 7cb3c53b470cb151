"""The contract suite on the listener that goes straight into the store: real databases, killed where they have to
refuse, and stopped where they mustn't answer."""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar
from uuid import UUID, uuid4

import pytest
from sqlalchemy import create_engine, make_url, text

from headwater.events import EventId
from headwater.lineage.listener import JdbcFactory, JdbcListener
from headwater.lineage.mapping.events import ARRIVALS_PER_ROW
from headwater.lineage.store import open_store
from headwater.local import MariaDBServer, PostgresServer
from headwater.testing.examples import EXAMPLES
from headwater.testing.listeners import DurableListenerContract
from headwater.testing.memory import MemoryContext
from tests.kit.processes import children_of

pytestmark = [pytest.mark.slow, pytest.mark.sample(20)]

Server = PostgresServer | MariaDBServer


@pytest.fixture(scope="module")
def postgres_of_ours() -> Iterator[PostgresServer]:
    """One that may be killed and stopped."""
    with PostgresServer(durable=False) as server:
        yield server


@pytest.fixture(scope="module")
def mariadb_of_ours() -> Iterator[MariaDBServer]:
    with MariaDBServer(durable=False) as server:
        yield server


class _Jdbc(DurableListenerContract):
    """What arrived is read by SQL: the numbers that the store says it received."""

    ordered: ClassVar[bool] = False
    passes_unknown_on: ClassVar[bool] = False
    url: str

    @pytest.fixture(autouse=True)
    def _executor(self) -> Iterator[None]:
        """And an end to the listeners, which a case that fails doesn't come to: their connections would be found open
        by whatever test comes next."""
        self.made: list[JdbcListener] = []
        with ThreadPoolExecutor(4) as self.executor:
            yield
            for each in self.made:
                each.close(0)

    def create(self) -> JdbcListener:
        """Its own limits are far above what a call may overstay its time by, so that none is taken for another."""
        url = self.url if self.url.startswith("jdbc:sqlite") else f"{self.url}?connect_timeout=60"
        context = MemoryContext("jdbc", {"url": url, "timeout": "60 s"}, self.executor)
        self.made.append(JdbcFactory().create(context))
        return self.made[-1]

    def delivered(self, listener: Any) -> list[EventId]:
        ids = {(event.producer, event.family.value, event.family_sequence): event.event_id for event in EXAMPLES}
        with open_store(self.url) as store, store.engine.connect() as connection:
            rows = connection.execute(text("SELECT producer, family, block, bits FROM arrivals")).all()
        return [
            ids.get((UUID(bytes=bytes(producer)), family, block * ARRIVALS_PER_ROW + bit + 1), EventId(uuid4(), 1))
            for producer, family, block, bits in rows
            for bit in range(ARRIVALS_PER_ROW)
            if bits >> bit & 1
        ]


class TestSQLite(_Jdbc):
    @pytest.fixture(autouse=True)
    def _file(self, tmp_path: Path) -> None:
        self.path = tmp_path / "store.db"
        self.url = f"jdbc:sqlite:{self.path}"

    def refusing(self) -> AbstractContextManager[None]:
        return self._away()

    @contextmanager
    def _away(self) -> Generator[None]:
        """Somebody has put another file in its place."""
        kept = self.path.with_name("kept")
        is_there = self.path.exists()
        if is_there:
            for each in self.path.parent.glob("store.db*"):
                each.rename(each.with_name(each.name.replace("store.db", "kept")))
        self.path.mkdir()
        yield
        self.path.rmdir()
        if is_there:
            for each in kept.parent.glob("kept*"):
                each.rename(each.with_name(each.name.replace("kept", "store.db")))

    @contextmanager
    def stalling(self) -> Generator[None]:
        """Somebody else writes, and doesn't come to an end."""
        open_store(self.url).close()
        other = sqlite3.connect(self.path, 60, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")
        other.close()


class _OnAServer(_Jdbc):
    server: Server

    @pytest.fixture(autouse=True)
    def _database(self, running: Server) -> None:
        self.server = running
        name = f"contract_{uuid4().hex}"
        engine = create_engine(running.address, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.execute(text(f"CREATE DATABASE {name}"))
        engine.dispose()
        self.url = make_url(running.address).set(database=name).render_as_string(hide_password=False)

    @contextmanager
    def refusing(self) -> Generator[None]:
        self.server.kill()
        try:
            yield
        finally:
            self.server.restart()

    @contextmanager
    def stalling(self) -> Generator[None]:
        """The server and its processes for each connection; it itself first, so that it makes no more of them."""
        assert self.server.pid is not None
        stopped = [self.server.pid]
        _signal(stopped, signal.SIGSTOP)
        stopped += children_of(self.server.pid)
        _signal(stopped, signal.SIGSTOP)
        try:
            yield
        finally:
            _signal(stopped, signal.SIGCONT)


def _signal(pids: list[int], number: signal.Signals) -> None:
    """The process of a connection that was closed just now may come to its end meanwhile."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


@pytest.mark.database
class TestPostgreSQL(_OnAServer):
    @pytest.fixture
    def running(self, postgres_of_ours: PostgresServer) -> Server:
        return postgres_of_ours


@pytest.mark.database
@pytest.mark.long
class TestMariaDB(_OnAServer):
    @pytest.fixture
    def running(self, mariadb_of_ours: MariaDBServer) -> Server:
        return mariadb_of_ours
