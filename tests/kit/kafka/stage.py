"""A real broker whose every client goes through a proxy, and what tests do to the broker behind its back."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import uuid
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    ResourceType,
)

from headwater.local import KafkaServer
from headwater.local.java import java
from headwater.local.kafka import kafka_libraries
from tests.kit.faults.tcp_proxy import CLEAR, Proxy
from tests.kit.topics import create_topic
from tests.kit.waiting import PATIENCE, until

_TOOL_SECONDS = 60.0
QUICK_BROKER = {
    # What was sent to a broker that is killed and comes back isn't waited for.
    "group.initial.rebalance.delay.ms": "0",
    # A deleted topic's name is free at once.
    "log.segment.delete.delay.ms": "1000",
}


@dataclass
class Stage:
    """The broker advertises the proxy's address, so nobody gets past it."""

    proxy: Proxy
    broker: KafkaServer
    client: Mapping[str, str] = field(default_factory=dict)
    """How to get in, with all rights."""

    @property
    def address(self) -> str:
        return self.proxy.address

    @property
    def itself(self) -> tuple[str, int]:
        """Where the broker listens, behind the proxy."""
        host, _, port = self.broker.address.rpartition(":")
        return host, int(port)

    def config(self) -> dict[str, Any]:
        """What a client is configured with that has all rights."""
        return {"bootstrap.servers": self.address, **self.client}

    def admin(self) -> AdminClient:
        return AdminClient({**self.config(), "log_level": 3})

    def create(self, topic: str, *, partitions: int = 3, **settings: str) -> None:
        """Create a topic; dots are written as underscores."""
        config = {key.replace("_", "."): value for key, value in settings.items()}
        create_topic(self.admin(), topic, partitions, config)

    def fill(self, topic: str, partitions: int, count: int) -> None:
        """So many messages of somebody else in each partition."""
        producer = Producer(self.config())
        for number in range(partitions * count):
            producer.produce(topic, b"somebody else's", partition=number % partitions)
        assert producer.flush(PATIENCE) == 0

    def delete(self, topic: str) -> None:
        admin = self.admin()
        admin.delete_topics([topic], request_timeout=PATIENCE)[topic].result(PATIENCE)

    def add_partitions(self, topic: str, total: int) -> None:
        admin = self.admin()
        admin.create_partitions([NewPartitions(topic, total)], request_timeout=PATIENCE)[topic].result(PATIENCE)

    def change(self, topic: str, **settings: str) -> None:
        """Set these settings of the topic; dots are written as underscores."""
        entries = [
            ConfigEntry(key.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
            for key, value in settings.items()
        ]
        wanted = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        admin = self.admin()
        admin.incremental_alter_configs([wanted], request_timeout=PATIENCE)[wanted].result(PATIENCE)

    def has(self, topic: str) -> bool:
        """Whether there is such a topic; to ask for one by its name can make it."""
        return topic in self.admin().list_topics(timeout=PATIENCE).topics

    def come_back(self) -> None:
        """Whatever was done to broker and network is undone."""
        self.proxy.turn(CLEAR)
        if not self.broker.running:
            self.broker.start()

    def stop_broker(self) -> None:
        """Ask it to end, as an operator does; it can be started again."""
        os.kill(self.broker.pid, signal.SIGTERM)
        until(lambda: not self.broker.running, self.broker.log_tail, PATIENCE)

    @contextmanager
    def frozen(self) -> Generator[None]:
        """It answers nothing meanwhile, and all of it afterwards."""
        assert self.broker.pid is not None
        os.kill(self.broker.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.broker.pid, signal.SIGCONT)

    def limit_files(self, size: int) -> None:
        """No file of the broker's gets larger than this from now on: its disk is full. A new start knows no limit."""
        resource.prlimit(self.broker.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    def limit_rate(self, bytes_per_second: int | None) -> None:
        """Producers that no other quota is for may send so much; None takes the quota away."""
        change = ["--delete-config", "producer_byte_rate"]
        if bytes_per_second is not None:
            change = ["--add-config", f"producer_byte_rate={bytes_per_second}"]
        self.tool("kafka.admin.ConfigCommand", "--alter", *change, "--entity-type", "clients", "--entity-default")

    def tool(self, program: str, *arguments: str) -> None:
        """Run one of Kafka's own programs against an open broker."""
        place = [str(java().executable), "-Xmx64m", "-XX:TieredStopAtLevel=1", "-cp", f"{kafka_libraries()}/*"]
        command = [*place, program, "--bootstrap-server", self.address, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TOOL_SECONDS, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@contextmanager
def stage(
    *,
    properties: Mapping[str, str] | None = None,
    client: Mapping[str, str] | None = None,
    format_arguments: Sequence[str] = (),
    directory: Path | None = None,
    proxy: Proxy | None = None,
) -> Generator[Stage]:
    """A broker behind a proxy of its own, or behind one that another broker is reached by at other times."""
    if proxy is None:
        with Proxy() as own:
            yield from _staged(own, properties or {}, client or {}, format_arguments, directory)
    else:
        yield from _staged(proxy, properties or {}, client or {}, format_arguments, directory)


def _staged(
    proxy: Proxy,
    properties: Mapping[str, str],
    client: Mapping[str, str],
    format_arguments: Sequence[str],
    directory: Path | None,
) -> Generator[Stage]:
    settings = {**QUICK_BROKER, "advertised.listeners": f"BROKER://{proxy.address}", **properties}
    server = KafkaServer(properties=settings, client=client, format_arguments=format_arguments, directory=directory)
    with server as broker:
        staged = Stage(proxy, broker, dict(client))
        if proxy.target is None:
            proxy.target = staged.itself
        yield staged


def new_topic() -> str:
    """A name that nobody else has."""
    return f"headwater.events.{uuid.uuid4().hex[:12]}"
