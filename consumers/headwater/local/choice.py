"""Decides where a server comes from.

The first of these that is available: an address in the environment; with HEADWATER_SERVERS=containers a container, if
testcontainers is installed and a Docker engine answers; a real server, started here.

Several servers at once, for a person at a terminal.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from enum import Enum
from functools import partial
from types import TracebackType

from typing_extensions import Self

from headwater.errors import ConfigurationError
from headwater.local import containers
from headwater.local.addresses import ExternalService, kafka_address, mariadb_address, postgres_address, query_fault
from headwater.local.errors import StartError
from headwater.local.kafka import KafkaServer, kafka_libraries, metadata_fault
from headwater.local.mariadb import MariaDBServer, mariadb_installation
from headwater.local.postgres import PostgresServer, postgres_programs
from headwater.local.service import ServerOrigin, Service

SERVERS_VARIABLE = "HEADWATER_SERVERS"
_CHOICES = ("containers", "local")


class ServerKind(Enum):
    """A kind of server."""

    KAFKA = "kafka"
    POSTGRES = "postgres"
    MARIADB = "mariadb"

    @property
    def variable(self) -> str:
        """The environment variable that gives its address."""
        return f"HEADWATER_{self.name}"


@dataclass(frozen=True)
class ServerChoice:
    """Where a server comes from, and why. `address` is set only if the environment gave one."""

    kind: ServerKind
    origin: ServerOrigin
    why: str
    address: str = ""


_ADDRESSES: dict[ServerKind, Callable[[str, str], str]] = {
    ServerKind.KAFKA: kafka_address,
    ServerKind.POSTGRES: postgres_address,
    ServerKind.MARIADB: mariadb_address,
}

_REQUIREMENTS: dict[ServerKind, Callable[[], object]] = {
    ServerKind.KAFKA: kafka_libraries,
    ServerKind.POSTGRES: postgres_programs,
    ServerKind.MARIADB: mariadb_installation,
}


def choose_server(
    kind: ServerKind,
    environ: Mapping[str, str] = os.environ,
    docker_answers: Callable[[], bool] = containers.docker_answers,
) -> ServerChoice:
    """Choose without starting anything."""
    given = environ.get(kind.variable, "").strip()
    if given:
        address = _ADDRESSES[kind](kind.variable, given)
        return ServerChoice(kind, ServerOrigin.ENVIRONMENT, f"{kind.variable} gives its address", address)
    choice = environ.get(SERVERS_VARIABLE, "").strip() or "local"
    if choice not in _CHOICES:
        raise ConfigurationError(f"{SERVERS_VARIABLE}={choice!r} is none of {', '.join(_CHOICES)}")
    if choice == "local":
        return ServerChoice(kind, ServerOrigin.LOCAL, f"neither {kind.variable} nor {SERVERS_VARIABLE} names another")
    if docker_answers():
        return ServerChoice(kind, ServerOrigin.CONTAINER, "testcontainers is installed and a Docker engine answers")
    return ServerChoice(kind, ServerOrigin.LOCAL, "no Docker engine answers, or testcontainers isn't installed")


def service(kind: ServerKind, *, durable: bool = True) -> Service:
    """Return the chosen server, not started yet. `durable` applies to databases that are started here."""
    decision = choose_server(kind)
    if decision.origin is ServerOrigin.ENVIRONMENT:
        return ExternalService(kind.value, kind.variable, decision.address, _fault(kind))
    if decision.origin is ServerOrigin.CONTAINER:
        return _container(kind)
    return _local(kind, durable=durable)


def prefetch(kinds: Iterable[ServerKind] = tuple(ServerKind)) -> None:
    """Download what local servers need, so that the first start doesn't wait for the network."""
    for kind in kinds:
        if choose_server(kind).origin is ServerOrigin.LOCAL:
            _REQUIREMENTS[kind]()


def kafka() -> Service:
    """Return a Kafka broker; its address is the bootstrap servers."""
    return service(ServerKind.KAFKA)


def postgres(*, durable: bool = True) -> Service:
    """Return a PostgreSQL; its address is a SQLAlchemy URL."""
    return service(ServerKind.POSTGRES, durable=durable)


def mariadb(*, durable: bool = True) -> Service:
    """Return a MariaDB; its address is a SQLAlchemy URL."""
    return service(ServerKind.MARIADB, durable=durable)


def _fault(kind: ServerKind) -> Callable[[str], str | None]:
    if kind is ServerKind.KAFKA:
        return lambda address: metadata_fault({"bootstrap.servers": address})
    return query_fault


def _container(kind: ServerKind) -> Service:
    if kind is ServerKind.KAFKA:
        return containers.kafka_container()
    if kind is ServerKind.POSTGRES:
        return containers.postgres_container(partial(postgres_address, "the container's URL"))
    return containers.mariadb_container(partial(mariadb_address, "the container's URL"))


def _local(kind: ServerKind, *, durable: bool) -> Service:
    if kind is ServerKind.KAFKA:
        return KafkaServer()
    if kind is ServerKind.POSTGRES:
        return PostgresServer(durable=durable)
    return MariaDBServer(durable=durable)


_LOOK_EVERY_SECONDS = 0.5


class Stack:
    """The servers of the given kinds; all are started or, when one fails, none stays."""

    def __init__(
        self, kinds: Iterable[ServerKind] = tuple(ServerKind), make: Callable[[ServerKind], Service] = service
    ) -> None:
        self.services = {kind: make(kind) for kind in kinds}

    @property
    def environment(self) -> dict[str, str]:
        """Environment variable → address: what another terminal sets to use these servers."""
        return {kind.variable: one.address for kind, one in self.services.items()}

    def start(self) -> Self:
        """Start all at the same time; the first failure stops the others and is raised."""
        try:
            with ThreadPoolExecutor(max(1, len(self.services))) as pool:
                for started in [pool.submit(one.start) for one in self.services.values()]:
                    started.result()
        except BaseException:
            self.stop()
            raise
        return self

    def wait(self, until: threading.Event) -> None:
        """Block until the event is set; StartError, with the end of its log, when a server ends by itself."""
        while not until.wait(_LOOK_EVERY_SECONDS):
            for one in self.services.values():
                if not one.running:
                    raise StartError(f"{one.name} ended by itself; the end of its log:\n{one.log_tail()}")

    def stop(self) -> None:
        """Stop all, in reverse; what one raises doesn't keep the others running."""
        with ExitStack() as stops:
            for one in self.services.values():
                stops.callback(one.stop)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
