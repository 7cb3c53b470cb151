"""Examinations of the listeners that need no server: what `headwater doctor` shows of them."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

from headwater.journal import Entry, Files, Journal, LocalLog, StorageError
from headwater.journal.filesystem import Kind, kind_of
from headwater.publishers.trial import trial_record
from headwater.spi import Finding, ListenerContext

if TYPE_CHECKING:
    from headwater.publishers.log import LogConfig

_PATIENCE: Final = 10.0
_SLOW: Final = 0.25
_MIB: Final = 1 << 20


def examine_log(directory: Path, config: LogConfig, context: ListenerContext, files: Files) -> Iterator[Finding]:
    """A directory that is there and may be written to."""
    yield Finding.fine("directory", f"{directory} can be written to")
    yield _place(directory, f"{context.prefix}dir")
    yield _room(directory, config.max_bytes, f"{context.prefix}max.bytes")
    try:
        log = LocalLog.open(directory, config.journal_options(), files=files)
        with log.writer() as journal:
            yield from _written_and_read(log, journal, context)
    except StorageError as e:
        yield Finding.wrong("writing", f"an event can't be written: {e}", "see to the disk, or name another directory")


def examine_console(stream: TextIO | None, name: str) -> Iterator[Finding]:
    """Nothing is written: who looks sees the doctor's own words there."""
    if stream is None or stream.closed:
        yield Finding.wrong(
            "stream", f"there is no {name} here, so events would be seen nowhere", "use another listener"
        )
        return
    yield Finding.fine("stream", f"events are shown on {name}; what can't be written in time is counted and left out")


def _place(directory: Path, key: str) -> Finding:
    found = kind_of(directory)
    if found.doubts is not None:
        return Finding.doubtful("file system", found.doubts, f"name a directory on a local disk in {key}")
    if found.kind is Kind.UNKNOWN:
        return Finding.doubtful(
            "file system", f"what {directory} is on isn't known here: a log belongs on a local disk"
        )
    return Finding.fine("file system", f"{found.type}, mounted at {found.mount}")


def _room(directory: Path, limit: int, key: str) -> Finding:
    free = shutil.disk_usage(directory).free
    words = f"{free // _MIB} MiB are free, and a partition may grow to {limit // _MIB} MiB"
    if free < limit:
        return Finding.doubtful("room", f"{words}: the disk is full before that", f"make room, or set {key} lower")
    return Finding.fine("room", words)


def _written_and_read(log: LocalLog, journal: Journal, context: ListenerContext) -> Iterator[Finding]:
    record, partition = trial_record(context.application), journal.directory.name
    (offset,) = journal.append_many([Entry(record.data, record.key, record.headers)])
    began = time.monotonic()
    is_synced = journal.flush(_PATIENCE)
    took = time.monotonic() - began
    words = f"one event was written to {partition} at offset {offset}, and is on the disk after {took * 1000:.0f} ms"
    if not is_synced:
        yield Finding.wrong("writing", f"the disk doesn't answer within {_PATIENCE:.0f} s", "see to the disk")
    elif took > _SLOW:
        yield Finding.doubtful("writing", words, "it works; a disk that is quicker lets events be acknowledged sooner")
    else:
        yield Finding.fine("writing", words)
    with log.reader(partition).tail(offset) as tail:
        read = [each.value for each in tail.read(1).records]
    if read == [record.data]:
        yield Finding.fine("reading", "it came back as it was written")
    else:
        yield Finding.wrong("reading", f"what is read at offset {offset} isn't what was written", "see to the disk")
