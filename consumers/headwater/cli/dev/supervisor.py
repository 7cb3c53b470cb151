"""Starts broker, database and writer, watches over them, and stops them. What ends by itself is started again on the
same address and data; what ends again and again is not.

The writer as one more server: started when broker and database answer, ready when it reads and stores.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Final

from typing_extensions import Self

from headwater.cli.dev.home import DevState, Home, Part, Phase
from headwater.errors import HeadwaterError
from headwater.local import ServerKind, ServerOrigin, Service, StartError, choose_server, service
from headwater.local.kafka import KafkaServer
from headwater.local.mariadb import MariaDBServer
from headwater.local.postgres import PostgresServer
from headwater.local.process import LaunchSpec, tail
from headwater.local.process_identity import ProcessIdentity
from headwater.local.server import LocalServer
from headwater.local.system_user import SystemUser

_ASK_SECONDS: Final = 2.0
_INSTANCE: Final = "group.instance.id=headwater-dev"
"""A writer that follows one that was killed takes over its partitions at once: it is the same member."""
_DIRECT: Final = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class WriterServer(LocalServer):
    """`address` is where its probes are."""

    name = "writer"

    def __init__(self, bus: str, store: str, directory: Path) -> None:
        super().__init__(directory)
        self._bus = bus
        self._store = store

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def _prepare(self) -> None:
        """Nothing: it makes the tables of a new store itself."""

    def _command(self) -> list[str]:
        health = f"127.0.0.1:{self._port}"
        command = [sys.executable, "-m", "headwater.cli", "writer", "run", "--bus", self._bus, "--health", health]
        return [*command, "--kafka", _INSTANCE] if self._bus.startswith("kafka:") else command

    def _launch_as(self, command: list[str], *, account: SystemUser | None = None) -> LaunchSpec:
        """The store's password stands in its environment, which others can't see, as they can a command."""
        environ = {"HEADWATER_STORE": self._store, "PYTHONUNBUFFERED": "1"}
        environ |= {name: os.environ[name] for name in ("HOME", "PYTHONPATH") if name in os.environ}
        return replace(super()._launch_as(command, account=account), environ=environ)

    def _answer(self) -> str | None:
        return probe(f"{self.address}/ready")[1] or None


def probe(url: str) -> tuple[str, str]:
    """Return what a probe answers, and what is wrong."""
    try:
        with _DIRECT.open(url, timeout=_ASK_SECONDS) as answer:
            return answer.read().decode(), ""
    except urllib.error.HTTPError as e:
        with e:
            return "", e.read().decode().strip() or e.reason
    except OSError as e:
        return "", str(e)


_LOOK_SECONDS: Final = 0.5
_MOST_ENDS: Final = 3
_ENDS_SECONDS: Final = 60.0
_HERE: Final[Mapping[ServerKind, type[KafkaServer | PostgresServer | MariaDBServer]]] = {
    ServerKind.KAFKA: KafkaServer,
    ServerKind.POSTGRES: PostgresServer,
    ServerKind.MARIADB: MariaDBServer,
}
Say = Callable[[str], None]


class Supervisor:
    """Starts and watches the servers of one home, whose lock the caller holds."""

    def __init__(self, home: Home, database: ServerKind, topic: str, say: Say) -> None:
        self._home = home
        self._database = database
        self._topic = topic
        self._say = say
        self._parts: dict[str, Service] = {}
        self._ends: dict[str, deque[float]] = {}
        self._guard = threading.Lock()
        self.state = DevState(supervisor=_self().to_dict(), since=_now())

    def start(self, prepare: Callable[[str], None]) -> Self:
        """Start everything, or nothing of it; `prepare` is given the broker's address before anybody uses it."""
        self._home.write(self.state)
        try:
            with ThreadPoolExecutor(2) as pool:
                for each in [pool.submit(self.start_one, self._server(k)) for k in (ServerKind.KAFKA, self._database)]:
                    each.result()
            broker, database = (self._parts[kind.value] for kind in (ServerKind.KAFKA, self._database))
            prepare(broker.address)
            bus = f"kafka://{broker.address}/{self._topic}"
            self.start_one(WriterServer(bus, database.address, self._home.part("writer")))
        except BaseException as e:
            self.stop(str(e) if isinstance(e, HeadwaterError) else "")
            raise
        self.state.phase = Phase.RUNNING
        self._home.write(self.state)
        return self

    def watch(self, until: threading.Event) -> None:
        """Watch until `until` is set; a StartError where a server doesn't stay.

        Each is started again by a thread of its own, so that the others are watched meanwhile. When this returns, none
        is being started any more."""
        restarts: dict[str, Future[None]] = {}
        try:
            with ThreadPoolExecutor(len(self._parts)) as pool:
                while not until.wait(_LOOK_SECONDS):
                    for name in [name for name, each in restarts.items() if each.done()]:
                        restarts.pop(name).result()
                    for name, each in self._parts.items():
                        if name not in restarts and not each.running and self._may_start(each):
                            restarts[name] = pool.submit(self._restart, name, each)
        except HeadwaterError as e:
            self.state.fault = str(e)
            raise

    def _may_start(self, server: Service) -> bool:
        """A writer ends where its broker or database is away: it waits for those that are started again."""
        if not isinstance(server, WriterServer):
            return True
        others = ((name, each) for name, each in self._parts.items() if each is not server)
        return all(each.running and self.state.parts[name].is_ready for name, each in others)

    def stop(self, fault: str = "") -> None:
        """Stop all, the writer first; what one raises doesn't keep the others running."""
        with ExitStack() as stops:
            stops.callback(self._note_end, fault)
            for part in self._parts.values():
                stops.callback(part.stop)

    def _note_end(self, fault: str) -> None:
        self.state.phase = Phase.STOPPED
        self.state.fault = self.state.fault or fault
        for part in self.state.parts.values():
            part.is_ready = False
        self._home.write(self.state)

    def _server(self, kind: ServerKind) -> Service:
        """Return a server that the environment names, or one here: a container would not keep its data."""
        if choose_server(kind, docker_answers=lambda: False).origin is ServerOrigin.ENVIRONMENT:
            return service(kind)
        return _HERE[kind](directory=self._home.part(kind.value))

    def start_one(self, server: Service) -> None:
        """Start one more, which is watched over from then on."""
        began = time.monotonic()
        self._parts[server.name] = server
        self.state.parts[server.name] = Part()
        try:
            server.start()
        except StartError as e:
            raise StartError(f"{server.name} doesn't start: {e}") from e
        self._note(server)
        self._say(f"{server.name:<9} is ready ({time.monotonic() - began:.1f} s)")

    def _note(self, server: Service, restarts: int = 0) -> None:
        part = Part(is_ready=True, address=server.address, restarts=restarts)
        if isinstance(server, LocalServer):
            found = ProcessIdentity.of(server.pid)
            part.process = {} if found is None else found.to_dict()
            part.gentle, part.log = int(server.gentle), str(server.log)
        with self._guard:
            self.state.parts[server.name] = part
            self._home.write(self.state)

    def _restart(self, name: str, server: Service) -> None:
        """Start it again, unless that was done too often. One that doesn't get ready has ended once more."""
        if not isinstance(server, LocalServer):
            return  # somebody else's: `status` asks it, and the writer waits for it
        ends = self._ends.setdefault(name, deque(maxlen=_MOST_ENDS))
        now = time.monotonic()
        ends.append(now)
        if len(ends) == _MOST_ENDS and now - ends[0] < _ENDS_SECONDS:
            raise StartError(f"{name} ended {_MOST_ENDS} times within a minute; the end of its log:\n{_end(server)}")
        self._say(f"{name:<9} has ended by itself; its log: {server.log}")
        with self._guard:
            self.state.parts[name].is_ready = False
            self._home.write(self.state)
        began = time.monotonic()
        try:
            server.restart()
        except StartError as e:
            self._say(f"{name:<9} isn't ready, and is started once more: {e}")
            return
        self._note(server, self.state.parts[name].restarts + 1)
        self._say(f"{name:<9} is ready again ({time.monotonic() - began:.1f} s)")


def _end(server: LocalServer) -> str:
    return tail(server.log, 20)


def _self() -> ProcessIdentity:
    found = ProcessIdentity.of(os.getpid())
    assert found is not None  # noqa: S101 - who asks is there
    return found


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")
