"""Hudi's log: the completed instants of a table's active timeline, and those that its archive has.

Hudi's archive: the instants that the active timeline no longer has, in Parquet files that a manifest lists.

Tables of version 8 and later have it below `.hoodie/timeline/history`. The archive of older tables is a log of Hudi's
own format, and isn't read.
"""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta, timezone
from typing import Any, Final, NamedTuple

import fastavro

from headwater.consumers.reconcile.files import LogFiles, read_json
from headwater.consumers.reconcile.model import LogCommit, TableLog, TableLogError
from headwater.errors import ConfigurationError
from headwater.events.commit_words import HUDI_KINDS, hudi_operation
from headwater.events.jobs import CommitKind, OverwriteScope
from headwater.events.scalars import Format
from headwater.plugins import extra_command

_HISTORY: Final = ".hoodie/timeline/history"
_COLUMNS: Final = ("instantTime", "completionTime", "action", "metadata")
_TRIES: Final = 3


class ArchivedInstant(NamedTuple):
    """A completed instant, as the archive has it."""

    requested: str
    completed: str
    action: str
    content: bytes


def read_archive(files: LogFiles) -> list[ArchivedInstant]:
    """Return the archive's instants, in no order; none where nothing was archived yet.

    A version of the archive is a manifest. Its files may be compacted away while they are read; then a newer version
    has their instants.
    """
    for _ in range(_TRIES):
        version = _newest_version(files)
        if version is None:
            return []
        found = _read_version(files, version)
        if found is not None:
            return found
    raise TableLogError(f"{_HISTORY} changed while it was read, {_TRIES} times: try again")


def _newest_version(files: LogFiles) -> int | None:
    content = files.read(f"{_HISTORY}/_version_")
    if content is not None and content.strip().isdigit():
        return int(content)
    # The file is written over, so that a reader may find it missing or empty for a moment.
    names = (each.name.partition("manifest_") for each in files.files_in(_HISTORY))
    return max(
        (int(number) for before, word, number in names if word and not before and number.isdigit()), default=None
    )


def _read_version(files: LogFiles, version: int) -> list[ArchivedInstant] | None:
    manifest = read_json(files, f"{_HISTORY}/manifest_{version}")
    if manifest is None:
        return None
    found: list[ArchivedInstant] = []
    for each in manifest["files"]:
        content = files.read(f"{_HISTORY}/{each['fileName']}")
        if content is None:
            return None
        found += _instants(content)
    return found


def _instants(content: bytes) -> list[ArchivedInstant]:
    try:
        from pyarrow import parquet  # noqa: PLC0415 - an extra
    except ImportError:
        message = "this table's older commits are in Hudi's archive; what reads it comes with " + extra_command(
            "reconcile"
        )
        raise ConfigurationError(message) from None
    rows: list[dict[str, Any]] = parquet.read_table(io.BytesIO(content), columns=list(_COLUMNS)).to_pylist()
    return [
        ArchivedInstant(row["instantTime"], row["completionTime"], row["action"], row["metadata"] or b"{}")
        for row in rows
    ]


_ACTIONS: Final = ("commit", "deltacommit", "replacecommit")
"""Those that make a table's rows what they are; a requested or inflight one has another word behind it."""
_INSTANT: Final = re.compile(rf"(\d{{14,17}})(?:_(\d{{14,17}}))?\.({'|'.join(_ACTIONS)})")
_DIGITS: Final = "%Y%m%d%H%M%S%f"
_QUARTER: Final = timedelta(minutes=15)
_FARTHEST: Final = timedelta(hours=14)
"""No time zone is farther from UTC."""


class _Instant(NamedTuple):
    completed: str
    number: int
    content: bytes
    modified: int | None
    """When its file was written, in microseconds. The archive doesn't say it."""


def read_log(files: LogFiles) -> TableLog | None:
    """Read the log; None where there is no table of this format.

    Times are those of the files, where there is one: an instant's own digits are in the time zone of whoever wrote it.
    """
    properties = files.read(".hoodie/hoodie.properties")
    if properties is None:
        return None
    active = _active(files)  # first: what is archived in between is found twice rather than never
    known = {each.number for each in active}
    archived = [
        _Instant(each.completed or each.requested, int(each.requested), each.content, None)
        for each in read_archive(files)
        if each.action in _ACTIONS and int(each.requested) not in known
    ]
    offset = timedelta() if b"timeline.timezone=UTC" in properties else _offset_of(active)
    commits, parent = [], None
    for instant in sorted([*archived, *active]):
        commits.append(_commit(instant, parent, offset))
        parent = instant.number
    return TableLog(Format.HUDI, None, tuple(commits))


def _active(files: LogFiles) -> list[_Instant]:
    instants = []
    for directory in (".hoodie/timeline", ".hoodie"):  # since version 8 of tables, and before
        for each in files.files_in(directory):
            found = _INSTANT.fullmatch(each.name)
            content = files.read(f"{directory}/{each.name}") if found else None
            if found is not None and content is not None:  # else it was archived meanwhile
                instants.append(_Instant(found[2] or found[1], int(found[1]), content, each.modified))
    return instants


def _commit(instant: _Instant, parent: int | None, offset: timedelta) -> LogCommit:
    operation = hudi_operation(str(_content(instant.content).get("operationType") or ""))
    kind = HUDI_KINDS.get(operation, CommitKind.OTHER)
    return LogCommit(
        snapshot=instant.number,
        time=_micros(_read(instant.completed) - offset) if instant.modified is None else instant.modified,
        kind=kind,
        replaced=_scope(operation, kind),
        parent=parent,
    )


def _offset_of(active: Iterable[_Instant]) -> timedelta:
    """Return by how much the writers' clocks were ahead of UTC, as the active instants' files show it: most of them
    were written when their digits say. Files that were copied have any time, and are of no use."""
    seen = Counter(
        round((_read(each.completed) - datetime.fromtimestamp(each.modified / 1e6, timezone.utc)) / _QUARTER) * _QUARTER
        for each in active
        if each.modified
    )
    return max((each for each in seen if abs(each) <= _FARTHEST), key=seen.__getitem__, default=timedelta())


def _read(digits: str) -> datetime:
    return datetime.strptime(digits.ljust(17, "0"), _DIGITS).replace(tzinfo=timezone.utc)


def _micros(time: datetime) -> int:
    return round(time.timestamp() * 1_000_000)


def _scope(operation: str, kind: CommitKind) -> OverwriteScope:
    if kind in {CommitKind.COMPACT, CommitKind.ALTER}:
        return OverwriteScope.NOTHING
    return OverwriteScope.ALL if operation == "INSERT_OVERWRITE_TABLE" else OverwriteScope.UNKNOWN


def _content(content: bytes) -> dict[str, Any]:
    """Return what a commit's file has: Avro since version 8 of tables, JSON before.

    Of a file that can't be read nothing is known but its instant."""
    try:
        if content[:3] == b"Obj":
            found = next(iter(fastavro.reader(io.BytesIO(content))), {})
        else:
            found = json.loads(content or b"{}")
    except (ValueError, EOFError, KeyError, IndexError, StopIteration):
        return {}
    return found if isinstance(found, dict) else {}
