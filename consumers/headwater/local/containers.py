"""Runs servers in containers with testcontainers, if a Docker engine answers.

This module isn't tested against a Docker engine. It is written for the documented interface of testcontainers 4
(KafkaContainer.with_kraft and get_bootstrap_server, PostgresContainer, MySqlContainer, get_connection_url).
testcontainers is imported only on use: `pip install testcontainers`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from types import TracebackType
from typing import Any

from typing_extensions import Self

from headwater.local.errors import NotOursError, StartError
from headwater.local.service import ServerOrigin

_KAFKA_IMAGE = "confluentinc/cp-kafka:8.1.0"  # Kafka 4.1
_POSTGRES_IMAGE = "postgres:18"
_MARIADB_IMAGE = "mariadb:11.4"


def docker_answers() -> bool:
    """Return whether testcontainers is installed and a Docker engine answers it."""
    if find_spec("testcontainers") is None or find_spec("docker") is None:
        return False
    docker = import_module("docker")
    try:
        client = docker.from_env(timeout=5)
    except docker.errors.DockerException:
        return False
    try:
        return bool(client.ping())
    except (docker.errors.DockerException, OSError):
        return False
    finally:
        client.close()


class ContainerService:
    """One container; it is removed by `stop`, and by testcontainers' own reaper when we are killed."""

    def __init__(self, name: str, make: Callable[[], Any], address_of: Callable[[Any], str]) -> None:
        self.name = name
        self.origin = ServerOrigin.CONTAINER
        self._make = make
        self._address_of = address_of
        self._container: Any = None

    @property
    def address(self) -> str:
        """See Service."""
        if self._container is None:
            raise NotOursError(f"{self.name} has no address before it is started: call start() first")
        return self._address_of(self._container)

    @property
    def running(self) -> bool:
        """See Service."""
        return self._container is not None

    def start(self) -> Self:
        """See Service."""
        if self._container is None:
            container = self._make()
            try:
                container.start()
            except Exception as error:
                container.stop()
                raise StartError(f"the container of {self.name} didn't start: {error}") from error
            self._container = container
        return self

    def kill(self) -> None:
        """See Service."""
        raise self._cannot("killed")

    def restart(self) -> None:
        """See Service."""
        raise self._cannot("restarted")

    def stop(self) -> None:
        """See Service."""
        container, self._container = self._container, None
        if container is not None:
            container.stop()

    def log_tail(self, lines: int = 40) -> str:
        """See Service."""
        if self._container is None:
            return ""
        out, err = self._container.get_logs()
        return "\n".join((out + err).decode(errors="replace").splitlines()[-lines:])

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _cannot(self, what: str) -> NotOursError:
        return NotOursError(
            f"{self.name} can't be {what} in its container: Docker gives it another port when it starts again. "
            "Set HEADWATER_SERVERS=local to have it started without Docker"
        )


def kafka_container() -> ContainerService:
    """Return a Kafka broker of one node."""
    return ContainerService(
        "kafka",
        lambda: import_module("testcontainers.kafka").KafkaContainer(_KAFKA_IMAGE).with_kraft(),
        lambda container: str(container.get_bootstrap_server()),
    )


def postgres_container(normal: Callable[[str], str]) -> ContainerService:
    """Return a PostgreSQL; `normal` brings the container's URL into the form that our clients take."""
    return ContainerService(
        "postgres",
        lambda: import_module("testcontainers.postgres").PostgresContainer(_POSTGRES_IMAGE),
        lambda container: normal(container.get_connection_url()),
    )


def mariadb_container(normal: Callable[[str], str]) -> ContainerService:
    """Return a MariaDB whose user is root, who may make databases; `normal` as above."""
    return ContainerService(
        "mariadb",
        lambda: import_module("testcontainers.mysql").MySqlContainer(_MARIADB_IMAGE, username="root"),
        lambda container: normal(container.get_connection_url()),
    )
