"""Finds the newest events about a table, on a bus or in a file, with the job lineage that they name."""

from __future__ import annotations

from argparse import Namespace
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from headwater.cli.bus import is_log, kafka_settings, log_directory, topic_of
from headwater.errors import ConfigurationError
from headwater.events.keys import datasets_in, name_pattern

if TYPE_CHECKING:
    from headwater.consumers.sources import BusRecord
    from headwater.forwarders.api import BusEvent, KnownLineage

_PAGE: Final = 1_000


@dataclass(frozen=True)
class RecentEvents:
    """Events, the oldest first, among so many records."""

    events: tuple[BusEvent, ...]
    lineage: KnownLineage
    records: int


@contextmanager
def recent_events(given: Namespace) -> Generator[RecentEvents, None, None]:
    """Find the newest events about the table that is named, or those of the file."""
    from headwater.events.avro import Codec  # noqa: PLC0415
    from headwater.forwarders.decoding import decode_records  # noqa: PLC0415
    from headwater.forwarders.known_lineage import LineageCache  # noqa: PLC0415
    from headwater.forwarders.state import ForwarderState  # noqa: PLC0415

    wanted, count = None if given.table is None else name_pattern(given.table), 0
    newest: deque[BusEvent] = deque(maxlen=given.limit)
    with TemporaryDirectory() as directory, ForwarderState(Path(directory), "plan") as state:
        lineage = LineageCache(state)
        codec = Codec()
        for records in _pages(given):
            count += len(records)
            for each in decode_records(codec, records, lineage).events:
                if wanted is None or any(map(wanted.fullmatch, datasets_in(each.event))):
                    newest.append(each)
        found = sorted(newest, key=lambda each: each.event.time)
        yield RecentEvents(tuple(found), lineage, count)


def _pages(given: Namespace) -> Iterator[list[BusRecord]]:
    if given.events is not None:
        return _of_file(given.events)
    if given.bus is None:
        raise ConfigurationError("where are the events? Name the bus by --bus, or a file with one event by --events")
    if is_log(given.bus):
        return _of_log(log_directory(given.bus))
    from headwater.consumers.replay.kafka_range import read_newest  # noqa: PLC0415

    return read_newest(kafka_settings(given.bus, given.kafka), topic_of(given.bus), given.records)


def _of_log(directory: Path) -> Iterator[list[BusRecord]]:
    from headwater.cli.events.reading import LocatedRecord, read_all  # noqa: PLC0415
    from headwater.cli.events.sources import LogDirectory, check_source  # noqa: PLC0415
    from headwater.consumers.sources import BusRecord  # noqa: PLC0415
    from headwater.lineage.bulk import BusPartition  # noqa: PLC0415

    page: list[BusRecord] = []
    for each in read_all(check_source(LogDirectory(directory))):
        if isinstance(each, LocatedRecord):
            where = BusPartition("log", str(directory), int(each.place.rpartition("-")[2]))
            record = each.record
            page.append(BusRecord(record.value, where, record.offset, each.time, record.key, record.headers))
        if len(page) == _PAGE:
            yield page
            page = []
    yield page


def _of_file(place: Path) -> Iterator[list[BusRecord]]:
    from headwater.consumers.sources import BusRecord  # noqa: PLC0415
    from headwater.lineage.bulk import BusPartition  # noqa: PLC0415

    try:
        data = place.read_bytes()
    except OSError as e:
        raise ConfigurationError(f"{place} can't be read: {e.strerror}") from e
    yield [BusRecord(data, BusPartition("file", str(place)), 0, None)]
