"""Hudi's log: the completed instants of a table's active timeline. Older ones are archived, and aren't read."""

from __future__ import annotations

import io
import json
import re
from typing import Any, Final, NamedTuple

import fastavro

from headwater.consumers.reconcile.files import LogFiles
from headwater.consumers.reconcile.model import LogCommit, TableLog
from headwater.events.commit_words import HUDI_KINDS, hudi_operation
from headwater.events.jobs import CommitKind, OverwriteScope
from headwater.events.scalars import Format

_INSTANT: Final = re.compile(r"(\d{14,17})(?:_(\d{14,17}))?\.(commit|deltacommit|replacecommit)")
"""Actions that make a table's rows what they are; a requested or inflight one has another word behind it."""


class _Instant(NamedTuple):
    completed: str
    number: int
    path: str
    modified: int


def read_log(files: LogFiles) -> TableLog | None:
    """Read the log; None where there is no table of this format.

    Times are those of the files: an instant's own digits are in the time zone of whoever wrote it.
    """
    if files.read(".hoodie/hoodie.properties") is None:
        return None
    instants: list[_Instant] = []
    for directory in (".hoodie/timeline", ".hoodie"):  # since version 8 of tables, and before
        for each in files.files_in(directory):
            found = _INSTANT.fullmatch(each.name)
            if found is not None:
                path = f"{directory}/{each.name}"
                instants.append(_Instant(found[2] or found[1], int(found[1]), path, each.modified))
    commits, parent = [], None
    for instant in sorted(instants):
        content = files.read(instant.path)
        if content is not None:  # else it was archived meanwhile
            commits.append(_commit(instant, content, parent))
            parent = instant.number
    return TableLog(Format.HUDI, None, tuple(commits))


def _commit(instant: _Instant, content: bytes, parent: int | None) -> LogCommit:
    operation = hudi_operation(str(_content(content).get("operationType") or ""))
    kind = HUDI_KINDS.get(operation, CommitKind.OTHER)
    return LogCommit(
        snapshot=instant.number,
        time=instant.modified,
        kind=kind,
        replaced=_scope(operation, kind),
        parent=parent,
    )


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
