"""How commands that consume a bus name it, and open it. Each kind of bus imports its own library only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from headwater.cli.flags import Flags, pair
from headwater.errors import ConfigurationError

if TYPE_CHECKING:
    from headwater.consumers.sources import EventSource
    from headwater.consumers.sources.api import StoredOffsets
    from headwater.consumers.sources.group_start import GroupStart, KafkaGroup, LogGroup, ReadOnlyGroup
    from headwater.lineage.bulk import BusPartition

WAYS: Final = "kafka://HOST:PORT[,HOST:PORT…][/TOPIC], log:DIR (log alone is the user's own log) or archive:DIR"
_ARCHIVE: Final = "archive:"
_TOPIC: Final = "headwater.events"


def bus_address(text: str) -> str:
    """Read where a bus is."""
    if text == "log":
        from headwater.publishers.log import data_directory  # noqa: PLC0415

        return f"log:{data_directory()}"
    scheme, _, rest = text.partition(":")
    if (scheme in {"log", "archive"} and rest) or (scheme == "kafka" and rest.removeprefix("//").partition("/")[0]):
        return text
    raise ValueError(f"{text!r} isn't a bus: write kafka://HOST:PORT, kafka://HOST:PORT/TOPIC, log:DIR or archive:DIR")


def add_bus(parser: Flags) -> None:
    """Add the flags that say where events are."""
    parser.flag("bus", bus_address, None, f"where events are: {WAYS}", "BUS")
    parser.flags("kafka", pair, "a setting of the Kafka client", "KEY=VALUE")


def require_bus(given: Any) -> None:
    """Raise what is missing if no flag says where events are."""
    if given.bus is None:
        raise ConfigurationError("where are the events? Name the bus by --bus kafka://HOST:PORT or --bus log:DIR")


def open_source(
    bus: str, group: str, kafka: Iterable[tuple[str, str]], stored: StoredOffsets | None = None
) -> EventSource:
    """Open a bus in a consumer group; `stored` returns offsets where a store keeps them, and not the bus."""
    if is_log(bus):
        from headwater.consumers.sources.local_log import LocalLogSource  # noqa: PLC0415

        return LocalLogSource(log_directory(bus), group, stored)
    if is_archive(bus):
        from headwater.consumers.sources.archive import ArchiveSource  # noqa: PLC0415

        return ArchiveSource(archive_place(bus), group, stored)
    from headwater.consumers.sources.kafka import KafkaSource  # noqa: PLC0415

    return KafkaSource(kafka_settings(bus, kafka), topic_of(bus), group, stored)


def is_log(bus: str) -> bool:
    return bus.startswith("log:")


def is_kafka(bus: str) -> bool:
    return bus.startswith("kafka:")


def is_archive(bus: str) -> bool:
    return bus.startswith(_ARCHIVE)


def archive_place(bus: str) -> str:
    """Return the directory or the URL of an archive; its `archive:` may be missing."""
    place = bus.removeprefix(_ARCHIVE)
    return place if "://" in place else str(Path(place).expanduser())


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


class ConsumerBus:
    """A bus that several consumers read, each in a consumer group of its own."""

    def __init__(self, address: str, kafka: Iterable[tuple[str, str]]) -> None:
        self._address: Final = address
        self._kafka: Final = tuple(kafka)

    @property
    def name(self) -> str:
        """The bus without its brokers, which may change."""
        if is_kafka(self._address):
            return f"kafka:{topic_of(self._address)}"
        scheme, _, place = self._address.partition(":")
        if "://" in place:
            return self._address
        return f"{scheme}:{Path(place).expanduser().resolve()}"

    def open(self, group: str) -> EventSource:
        return open_source(self._address, group, self._kafka)

    def has_begun(self, group: str) -> bool:
        return self._group(group).has_begun()

    def begin(self, group: str, start: GroupStart | None, offsets: Mapping[BusPartition, int]) -> None:
        self._group(group).begin(start, offsets)

    def _group(self, group: str) -> KafkaGroup | LogGroup | ReadOnlyGroup:
        from headwater.consumers.sources.group_start import KafkaGroup, LogGroup, ReadOnlyGroup  # noqa: PLC0415

        if is_archive(self._address):
            return ReadOnlyGroup(self._address)
        if is_log(self._address):
            return LogGroup(log_directory(self._address), group)
        return KafkaGroup(kafka_settings(self._address, self._kafka), topic_of(self._address), group)
