"""Decides where a server comes from.

The first of these that is available: an address in the environment; with HEADWATER_SERVERS=containers a container, if
testcontainers is installed and a Docker engine answers; a real server, started here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import partial

from headwater.errors import ConfigurationError
from headwater.local import containers
from headwater.local.addresses import kafka_address, mariadb_address, postgres_address, query_fault
from headwater.local.external import ExternalService
from headwater.local.kafka import KafkaServer, kafka_libraries, metadata_fault
from headwater.local.mariadb import MariaDBServer
from headwater.local.mariadb_programs import mariadb_installation
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
