"""How commands that consume a bus name it, and open it. Each kind of bus imports its own library only."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from headwater.consumers.sources import EventSource
    from headwater.consumers.sources.api import StoredOffsets

WAYS: Final = "kafka://HOST:PORT[,HOST:PORT…][/TOPIC], log:DIR or archive:DIR"
ARCHIVE: Final = "archive:"
_TOPIC: Final = "headwater.events"


def bus_address(text: str) -> str:
    """Read where a bus is."""
    scheme, _, rest = text.partition(":")
    if (scheme in {"log", "archive"} and rest) or (scheme == "kafka" and rest.removeprefix("//").partition("/")[0]):
        return text
    raise ValueError(f"{text!r} isn't a bus: write kafka://HOST:PORT, kafka://HOST:PORT/TOPIC, log:DIR or archive:DIR")


def open_source(
    bus: str, group: str, kafka: Iterable[tuple[str, str]], stored: StoredOffsets | None = None
) -> EventSource:
    """Open a bus in a consumer group; `stored` returns offsets where a store keeps them, and not the bus."""
    if is_log(bus):
        from headwater.consumers.sources.local_log import LocalLogSource  # noqa: PLC0415

        return LocalLogSource(log_directory(bus), group, stored)
    if bus.startswith(ARCHIVE):
        from headwater.consumers.sources.archive import ArchiveSource  # noqa: PLC0415

        return ArchiveSource(Path(bus.removeprefix(ARCHIVE)).expanduser(), group, stored)
    from headwater.consumers.sources.kafka import KafkaSource  # noqa: PLC0415

    return KafkaSource(kafka_settings(bus, kafka), topic_of(bus), group, stored)


def is_log(bus: str) -> bool:
    return bus.startswith("log:")


def is_kafka(bus: str) -> bool:
    return bus.startswith("kafka:")


def log_directory(bus: str) -> Path:
    return Path(bus.removeprefix("log:")).expanduser()


def topic_of(bus: str) -> str:
    return bus.removeprefix("kafka:").removeprefix("//").partition("/")[2] or _TOPIC


def kafka_settings(bus: str, kafka: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the settings of the Kafka client."""
    return {**dict(kafka), "bootstrap.servers": bus.removeprefix("kafka:").removeprefix("//").partition("/")[0]}


def host_and_port(text: str) -> tuple[str, int]:
    """Read where something is served."""
    host, _, port = text.rpartition(":")
    if not port.isdigit() or int(port) >= 1 << 16:
        raise ValueError(f"{text!r} isn't HOST:PORT")
    return host or "127.0.0.1", int(port)
