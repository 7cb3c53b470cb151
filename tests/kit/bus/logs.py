"""What a local log has in it, read by what reads journals."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

from headwater.events.envelope import EventId
from headwater.journal import JournalReader, JournalRecord, LocalLog


def records_of(directory: Path) -> list[JournalRecord]:
    """All records of a log, each partition in its order, by what reads journals."""
    found: list[JournalRecord] = []
    for partition in LocalLog.open(directory).partitions():
        reader = JournalReader.open(directory / partition)
        with reader.tail(reader.first_offset()) as tail:
            while batch := tail.read():
                assert not batch.missing
                found.extend(batch.records)
    return found


def id_of(record: JournalRecord) -> EventId:
    headers = dict(record.headers)
    return EventId(UUID(headers["producer"].decode()), int(headers["sequence"]))
