"""A real Kafka broker of one node (KRaft, no ZooKeeper) on this machine, without Docker and without root."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from headwater.local.cache import cache_directory, cached_directory, expected_hashes, verify
from headwater.local.fetch import Artifact, Fetcher, fetcher
from headwater.local.java import java
from headwater.local.process import run_tool
from headwater.local.progress import announce
from headwater.local.server import LocalServer

VERSION = "4.1.1"
ARTIFACTS = (
    Artifact("org.apache.kafka", "kafka_2.13", VERSION),
    Artifact("org.apache.logging.log4j", "log4j-slf4j-impl", "2.24.3"),
)
HASHES = f"kafka-{VERSION}.sha256"
_NODE = 1
_SMALL_JVM = ("-Xmx128m", "-Xms64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_LOG4J = """rootLogger.level = warn
rootLogger.appenderRef.stdout.ref = stdout
appender.stdout.type = Console
appender.stdout.name = stdout
appender.stdout.layout.type = PatternLayout
appender.stdout.layout.pattern = %d %p %c: %m%n
logger.groups.name = org.apache.kafka.coordinator.group
logger.groups.level = info
"""
"""Log warnings, and members that join or leave a consumer group."""
_PROPERTIES = {
    "process.roles": "broker,controller",
    "node.id": str(_NODE),
    # BROKER is what clients see; tests give it another protocol by listener.security.protocol.map.
    "listener.security.protocol.map": "BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "BROKER",
    "controller.listener.names": "CONTROLLER",
    # One node can't replicate.
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.min.isr": "1",
    # The default of 128 MiB is more than the whole heap.
    "log.cleaner.dedupe.buffer.size": "8388608",
    # A node that was killed is let in again after 2 s instead of 9 s.
    "broker.session.timeout.ms": "2000",
    "broker.heartbeat.interval.ms": "500",
    "group.initial.rebalance.delay.ms": "0",
}


def kafka_libraries(fetch_with: Callable[[], Fetcher] = fetcher, cache: Path | None = None) -> Path:
    """Return the directory with the broker's jars, fetched the first time and verified every time."""
    expected = expected_hashes(HASHES)

    def fill(place: Path) -> None:
        with announce(f"fetching Kafka {VERSION} ({len(expected)} files, 43 MB; once)"):
            fetch_with().fetch(ARTIFACTS, place)

    return cached_directory(
        f"kafka-{VERSION}", fill, check=lambda place: verify(place, expected), cache=cache or cache_directory()
    )


class KafkaServer(LocalServer):
    """The broker; `address` is its bootstrap server.

    `properties` are added to (and win over) its server.properties; `client` is what a client needs to get in
    then (security.protocol, sasl.*, ssl.*); `format_arguments` go to the storage tool (`--add-scram` …).
    Anybody on this machine can use it unless `properties` say otherwise.
    """

    name = "kafka"
    _ports_needed = 2

    def __init__(
        self,
        *,
        properties: Mapping[str, str] | None = None,
        client: Mapping[str, str] | None = None,
        format_arguments: Sequence[str] = (),
        jvm_options: Sequence[str] = _SMALL_JVM,
        directory: Path | None = None,
    ) -> None:
        super().__init__(directory)
        self._properties = dict(properties or {})
        self._client = dict(client or {})
        self._format_arguments = list(format_arguments)
        self._jvm_options = list(jvm_options)
        self._classpath: list[str] = []
        self._cluster = ""

    @property
    def address(self) -> str:
        """The bootstrap server, host:port."""
        return f"127.0.0.1:{self._port}"

    def client_config(self, **more: str) -> dict[str, Any]:
        """Return what any client of confluent-kafka needs to reach it, plus `more` (dots written as underscores)."""
        extra = {key.replace("_", "."): value for key, value in more.items()}
        return {"bootstrap.servers": self.address, **self._client, **extra}

    def _prepare(self) -> None:
        libraries = kafka_libraries()
        (self._workspace.path / "log4j2.properties").write_text(_LOG4J)
        classpath = f"{self._workspace.path}:{libraries}/*"
        self._classpath = [str(java().executable), *self._jvm_options, "-cp", classpath]
        identity = self._workspace.path / "cluster.id"
        if not identity.exists():
            cluster = new_cluster()
            tool = ["kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(self._write_settings((1, 2)))]
            run_tool(self._launch_as([*self._classpath, *tool, *self._format_arguments]))
            identity.write_text(cluster)
        self._cluster = identity.read_text()

    def _command(self) -> list[str]:
        return [*self._classpath, "kafka.Kafka", str(self._write_settings(self._ports))]

    def _write_settings(self, ports: tuple[int, ...]) -> Path:
        broker, controller = ports
        settings = {
            **_PROPERTIES,
            "listeners": f"BROKER://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"BROKER://127.0.0.1:{broker}",
            "controller.quorum.voters": f"{_NODE}@127.0.0.1:{controller}",
            "log.dirs": str(self._workspace.path / "data"),
            **self._properties,
        }
        place = self._workspace.path / "server.properties"
        place.touch(mode=0o600)  # it may hold passwords
        place.write_text(properties_text(settings), encoding="ascii")
        return place

    def _answer(self) -> str | None:
        return metadata_fault(self.client_config(), node=_NODE, cluster=self._cluster)


def new_cluster() -> str:
    """As Kafka makes them: one that began with a dash would be read as a flag."""
    while True:
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not cluster.startswith("-"):
            return cluster


def metadata_fault(config: Mapping[str, Any], *, node: int | None = None, cluster: str | None = None) -> str | None:
    """Ask for the metadata; return None if they came (from that node of that cluster), else what is wrong."""
    from confluent_kafka import KafkaException  # noqa: PLC0415 -- not needed to decide or to fetch
    from confluent_kafka.admin import AdminClient  # noqa: PLC0415

    errors: list[str] = []  # a wrong password or certificate shows in this callback only
    quick: dict[str, Any] = {"log_level": 0, "reconnect.backoff.max.ms": 200}
    quick["error_cb"] = lambda error: errors.append(error.str())
    client = AdminClient({**config, **quick})
    try:
        metadata = client.list_topics(timeout=2)
    except KafkaException as error:
        client.poll(0)
        return "; ".join(dict.fromkeys([str(error.args[0]), *errors]))
    answering = str(metadata.cluster_id)
    if cluster not in (None, answering):
        return f"another cluster ({answering}) answers there"
    if node is not None and node not in metadata.brokers:
        return "the broker isn't registered yet"
    return None


def properties_text(settings: Mapping[str, str]) -> str:
    """Return a Java properties file: backslashes doubled, everything beyond ASCII as \\uXXXX."""
    return "".join(f"{key}={_escape(value)}\n" for key, value in settings.items())


def _escape(value: str) -> str:
    plain = value.replace("\\", "\\\\").replace("\n", "\\n")
    units = plain.encode("utf-16-be")
    codes = (int.from_bytes(units[at : at + 2], "big") for at in range(0, len(units), 2))
    return "".join(chr(code) if code < 127 else f"\\u{code:04x}" for code in codes)
