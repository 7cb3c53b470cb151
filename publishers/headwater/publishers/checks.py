"""Examinations of the listeners that need no server: what `headwater doctor` shows of them."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TextIO

from headwater.events.avro import Codec, current_schema
from headwater.events.envelope import Event
from headwater.events.health import Closed
from headwater.events.keys import headers_of, key_of
from headwater.events.producer import Producer
from headwater.journal import Files, Journal, JournalEntry, JournalOptions, LocalLog, StorageError
from headwater.journal.filesystem import FileSystemKind, file_system_of
from headwater.spi import Application, CheckResult, EventRecord, ListenerContext, SpoolPosition

_TIMEOUT_SECONDS: Final = 10.0
_SLOW_SECONDS: Final = 0.25
_MIB: Final = 1 << 20


def check_log(
    directory: Path, options: JournalOptions, limit: int, context: ListenerContext, files: Files
) -> Iterator[CheckResult]:
    """Check a local log in a directory that exists and can be written to; `limit` is a partition's, in bytes."""
    yield CheckResult.ok("directory", f"{directory} can be written to")
    yield _check_directory(directory, f"{context.prefix}dir")
    yield _check_free_space(directory, limit, f"{context.prefix}max.bytes")
    try:
        log = LocalLog.open(directory, options, files=files)
        with log.writer() as journal:
            yield from _check_round_trip(log, journal, context)
    except StorageError as e:
        yield CheckResult.error(
            "writing", f"an event can't be written: {e}", "see to the disk, or name another directory"
        )


def check_console(stream: TextIO | None, name: str) -> Iterator[CheckResult]:
    """Nothing is written: who looks sees the doctor's own words there."""
    if stream is None or stream.closed:
        yield CheckResult.error(
            "stream", f"there is no {name} here, so events would be seen nowhere", "use another listener"
        )
        return
    yield CheckResult.ok("stream", f"events are shown on {name}; what can't be written in time is counted and left out")


def _check_directory(directory: Path, key: str) -> CheckResult:
    found = file_system_of(directory)
    if found.doubts is not None:
        return CheckResult.warning("file system", found.doubts, f"name a directory on a local disk in {key}")
    if found.kind is FileSystemKind.UNKNOWN:
        return CheckResult.warning(
            "file system", f"what {directory} is on isn't known here: a log belongs on a local disk"
        )
    return CheckResult.ok("file system", f"{found.type}, mounted at {found.mount}")


def _check_free_space(directory: Path, limit: int, key: str) -> CheckResult:
    free = shutil.disk_usage(directory).free
    words = f"{free // _MIB} MiB are free, and a partition may grow to {limit // _MIB} MiB"
    if free < limit:
        return CheckResult.warning("room", f"{words}: the disk is full before that", f"make room, or set {key} lower")
    return CheckResult.ok("room", words)


def _check_round_trip(log: LocalLog, journal: Journal, context: ListenerContext) -> Iterator[CheckResult]:
    record, partition = probe_record(context.application), journal.directory.name
    (offset,) = journal.append_many([JournalEntry(record.data, record.key, record.headers)])
    began = time.monotonic()
    is_synced = journal.flush(_TIMEOUT_SECONDS)
    took = time.monotonic() - began
    words = f"one event was written to {partition} at offset {offset}, and is on the disk after {took * 1000:.0f} ms"
    if not is_synced:
        yield CheckResult.error(
            "writing", f"the disk doesn't answer within {_TIMEOUT_SECONDS:.0f} s", "see to the disk"
        )
    elif took > _SLOW_SECONDS:
        yield CheckResult.warning(
            "writing", words, "it works; a disk that is quicker lets events be acknowledged sooner"
        )
    else:
        yield CheckResult.ok("writing", words)
    with log.reader(partition).tail(offset) as tail:
        read = [record.value for record in tail.read(1).records]
    if read == [record.data]:
        yield CheckResult.ok("reading", "it came back as it was written")
    else:
        yield CheckResult.error("reading", f"what is read at offset {offset} isn't what was written", "see to the disk")


def probe_record(application: Application) -> EventRecord:
    """Return the event that an examination writes, as it would come out of a spool.

    Its producer emits this one alone, `Closed`: readers take it for a driver that came and went and did nothing.
    """
    records: list[EventRecord] = []

    def append(event: Event, data: bytes) -> None:
        headers = headers_of(event, current_schema(type(event)).fingerprint)
        records.append(EventRecord(SpoolPosition(0), data, key_of(event), headers, Codec().decode))

    Producer(application.id).emit(Closed(), append)
    return records[0]
