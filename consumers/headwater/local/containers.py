"""Runs servers in containers with testcontainers, if a Docker engine answers.

HEADWATER_KAFKA_IMAGE, HEADWATER_POSTGRES_IMAGE and HEADWATER_MARIADB_IMAGE name other images, which behave as the
public ones do. testcontainers is imported only on use: `pip install testcontainers`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

from typing_extensions import Self

from headwater.local.errors import NotOursError, StartError
from headwater.local.service import ForeignService, ServerOrigin

IMAGES: Final[Mapping[str, str]] = {
    "HEADWATER_KAFKA_IMAGE": "confluentinc/cp-kafka:8.1.0",  # Kafka 4.1
    "HEADWATER_POSTGRES_IMAGE": "postgres:18",
    "HEADWATER_MARIADB_IMAGE": "mariadb:11.4",
}
"""By the variable that names another."""
_KAFKA_SECONDS: Final = 120.0
"""How long a broker may take to start; 30 s, the default of testcontainers, is too short for a busy machine."""
_ONE_BROKER: Final = {
    "KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1",
    "KAFKA_TRANSACTION_STATE_LOG_MIN_ISR": "1",
    "KAFKA_TRANSACTION_STATE_LOG_NUM_PARTITIONS": "1",
    "KAFKA_SHARE_COORDINATOR_STATE_TOPIC_REPLICATION_FACTOR": "1",
    "KAFKA_SHARE_COORDINATOR_STATE_TOPIC_MIN_ISR": "1",
    "KAFKA_SHARE_COORDINATOR_STATE_TOPIC_NUM_PARTITIONS": "1",
}
"""What testcontainers leaves at values for three brokers. Without it a transaction waits for ever."""


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


class ContainerService(ForeignService):
    """One container; it is removed by `stop`, and by testcontainers' own reaper when we are killed."""

    def __init__(self, name: str, make: Callable[[], Any], address_of: Callable[[Any], str], **starting: float) -> None:
        super().__init__(name, ServerOrigin.CONTAINER)
        self._make = make
        self._address_of = address_of
        self._starting = starting
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
                container.start(**self._starting)
            except Exception as error:
                log = _log_of(container)
                container.stop()
                raise StartError(f"the container of {self.name} didn't start: {error}\n{log}") from error
            self._container = container
        return self

    def stop(self) -> None:
        """See Service."""
        container, self._container = self._container, None
        if container is not None:
            container.stop()

    def log_tail(self, lines: int = 40) -> str:
        """See Service."""
        return "" if self._container is None else _log_of(self._container, lines)

    def refusal(self, what: str) -> str:
        return (
            f"{self.name} can't be {what} in its container: Docker gives it another port when it starts again. "
            "Set HEADWATER_SERVERS=local to have it started without Docker"
        )


def _log_of(container: Any, lines: int = 40) -> str:
    try:
        out, err = container.get_logs()
    except Exception:  # noqa: BLE001 - it wasn't even made
        return ""
    return "\n".join((out + err).decode(errors="replace").splitlines()[-lines:])


def image(server: str) -> str:
    """Return the image of this kind of server."""
    variable = f"HEADWATER_{server.upper()}_IMAGE"
    return os.environ.get(variable, "").strip() or IMAGES[variable]


def kafka_container() -> ContainerService:
    """Return a Kafka broker of one node."""

    def make() -> Any:
        kind = import_module("testcontainers.community.kafka").KafkaContainer
        return kind(image("kafka")).with_kraft().with_envs(**_ONE_BROKER)

    return ContainerService(
        "kafka", make, lambda container: str(container.get_bootstrap_server()), timeout=_KAFKA_SECONDS
    )


def postgres_container(normal: Callable[[str], str]) -> ContainerService:
    """Return a PostgreSQL; `normal` brings the container's URL into the form that our clients take."""
    return ContainerService(
        "postgres",
        lambda: import_module("testcontainers.community.postgres").PostgresContainer(image("postgres")),
        lambda container: normal(container.get_connection_url()),
    )


def mariadb_container(normal: Callable[[str], str]) -> ContainerService:
    """Return a MariaDB whose user is root, who may make databases; `normal` as above."""
    return ContainerService(
        "mariadb",
        lambda: import_module("testcontainers.community.mysql").MySqlContainer(image("mariadb"), username="root"),
        lambda container: normal(container.get_connection_url()),
    )
