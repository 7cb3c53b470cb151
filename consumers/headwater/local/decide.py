"""The one place that decides where a server comes from.

In this order: an address in the environment; a container, when testcontainers is installed and a Docker engine
answers; the real server, started here. HEADWATER_SERVERS=local leaves the second step
out, HEADWATER_SERVERS=container insists on it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import partial

from headwater.errors import ConfigurationError
from headwater.local import containers
from headwater.local.address import kafka_address, mariadb_address, postgres_address
from headwater.local.database import query_fault
from headwater.local.errors import MissingRequirementError
from headwater.local.given import GivenService
from headwater.local.kafka import KafkaServer, kafka_libraries, metadata_fault
from headwater.local.mariadb import MariaDBServer
from headwater.local.mariadb_programs import mariadb_installation
from headwater.local.postgres import PostgresServer, postgres_programs
from headwater.local.service import Origin, Service

SERVERS_VARIABLE = "HEADWATER_SERVERS"
_CHOICES = ("auto", "container", "local")


class Kind(Enum):
    """A kind of server."""

    KAFKA = "kafka"
    POSTGRES = "postgres"
    MARIADB = "mariadb"

    @property
    def variable(self) -> str:
        """The environment variable that gives its address."""
        return f"HEADWATER_{self.name}"


@dataclass(frozen=True)
class Decision:
    """Where a server comes from and why; `address` only when the environment gave one."""

    kind: Kind
    origin: Origin
    why: str
    address: str = ""


_ADDRESSES: dict[Kind, Callable[[str, str], str]] = {
    Kind.KAFKA: kafka_address,
    Kind.POSTGRES: postgres_address,
    Kind.MARIADB: mariadb_address,
}

_REQUIREMENTS: dict[Kind, Callable[[], object]] = {
    Kind.KAFKA: kafka_libraries,
    Kind.POSTGRES: postgres_programs,
    Kind.MARIADB: mariadb_installation,
}


def decide(
    kind: Kind,
    environ: Mapping[str, str] = os.environ,
    docker_answers: Callable[[], bool] = containers.docker_answers,
) -> Decision:
    """Decide without starting anything."""
    given = environ.get(kind.variable, "").strip()
    if given:
        address = _ADDRESSES[kind](kind.variable, given)
        return Decision(kind, Origin.ENVIRONMENT, f"{kind.variable} gives its address", address)
    choice = environ.get(SERVERS_VARIABLE, "").strip() or "auto"
    if choice not in _CHOICES:
        raise ConfigurationError(f"{SERVERS_VARIABLE}={choice!r} is none of {', '.join(_CHOICES)}")
    if choice == "local":
        return Decision(kind, Origin.LOCAL, f"{SERVERS_VARIABLE}=local")
    if docker_answers():
        return Decision(kind, Origin.CONTAINER, "testcontainers is installed and a Docker engine answers")
    if choice == "container":
        raise MissingRequirementError(
            f"{SERVERS_VARIABLE}=container, but no Docker engine answers testcontainers: start Docker and "
            "pip install testcontainers, or unset it"
        )
    return Decision(kind, Origin.LOCAL, f"{kind.variable} is not set and no Docker engine answers testcontainers")


def service(kind: Kind, *, durable: bool = True) -> Service:
    """Return the server decided for, not started yet; `durable` is for databases started here."""
    decision = decide(kind)
    if decision.origin is Origin.ENVIRONMENT:
        return GivenService(kind.value, kind.variable, decision.address, _fault(kind))
    if decision.origin is Origin.CONTAINER:
        return _container(kind)
    return _local(kind, durable=durable)


def prefetch(kinds: Iterable[Kind] = tuple(Kind)) -> None:
    """Fetch what the servers that would be started here need, so that the first start doesn't wait for a network."""
    for kind in kinds:
        if decide(kind).origin is Origin.LOCAL:
            _REQUIREMENTS[kind]()


def kafka() -> Service:
    """Return a Kafka broker; its address is the bootstrap servers."""
    return service(Kind.KAFKA)


def postgres(*, durable: bool = True) -> Service:
    """Return a PostgreSQL; its address is a SQLAlchemy URL."""
    return service(Kind.POSTGRES, durable=durable)


def mariadb(*, durable: bool = True) -> Service:
    """Return a MariaDB; its address is a SQLAlchemy URL."""
    return service(Kind.MARIADB, durable=durable)


def _fault(kind: Kind) -> Callable[[str], str | None]:
    if kind is Kind.KAFKA:
        return lambda address: metadata_fault({"bootstrap.servers": address})
    return query_fault


def _container(kind: Kind) -> Service:
    if kind is Kind.KAFKA:
        return containers.kafka_container()
    if kind is Kind.POSTGRES:
        return containers.postgres_container(partial(postgres_address, "the container's URL"))
    return containers.mariadb_container(partial(mariadb_address, "the container's URL"))


def _local(kind: Kind, *, durable: bool) -> Service:
    if kind is Kind.KAFKA:
        return KafkaServer()
    if kind is Kind.POSTGRES:
        return PostgresServer(durable=durable)
    return MariaDBServer(durable=durable)
