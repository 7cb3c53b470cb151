"""Iceberg's log: the newest metadata file, which lists all snapshots that haven't expired, of every branch."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from headwater.consumers.reconcile.files import LogFiles, read_json
from headwater.consumers.reconcile.model import LogCommit, PickedCommit, TableLog, TableLogError
from headwater.events.commit_words import ICEBERG_KINDS
from headwater.events.jobs import CommitKind, OverwriteScope
from headwater.events.scalars import Format

_HADOOP: Final = re.compile(r"v(\d+)(?:\.gz)?\.metadata\.json(?:\.gz)?")
_CATALOG: Final = re.compile(r"(\d+)-[0-9a-fA-F-]+(?:\.gz)?\.metadata\.json")
_MAIN: Final = "main"
_PICKED: Final = "source-snapshot-id"
_KEEPS_ALL: Final = frozenset({CommitKind.APPEND, CommitKind.REPLACE})
"""Of these kinds no row is replaced. A delete or an overwrite may be of a part or of all."""


def read_log(files: LogFiles, metadata_file: str | None = None) -> TableLog | None:
    """Read the log; None where there is no table of this format. `metadata_file` is what a catalog says is the current
    one, relative to the table.

    A catalog alone knows which metadata file is current. Without its word the newest is taken: where a table is kept by
    path (`v3.metadata.json`) that is what Iceberg does itself; else its newest file may be of a commit that failed, so
    what only that file has isn't confirmed.
    """
    if metadata_file is not None:
        return _log_of(_metadata(files, metadata_file))
    names = [each.name for each in files.files_in("metadata")]
    by_path = sorted((int(found[1]), name) for name in names if (found := _HADOOP.fullmatch(name)))
    if by_path:
        return _log_of(_metadata(files, f"metadata/{by_path[-1][1]}"))
    by_catalog = sorted((int(found[1]), name) for name in names if (found := _CATALOG.fullmatch(name)))
    return _without_catalog(files, [name for _, name in by_catalog]) if by_catalog else None


def _without_catalog(files: LogFiles, names: list[str]) -> TableLog:
    """What the newest file's predecessor has was current once: the newest file was made from it."""
    newest = _metadata(files, f"metadata/{names[-1]}")
    before = {each["metadata-file"].rpartition("/")[2] for each in newest.get("metadata-log") or ()}
    previous = next((name for name in reversed(names[:-1]) if name in before), None)
    earlier = [] if previous is None else _metadata(files, f"metadata/{previous}").get("snapshots") or []
    return _log_of(newest, {each["snapshot-id"] for each in earlier})


def _metadata(files: LogFiles, path: str) -> dict[str, Any]:
    found = read_json(files, path)
    if found is None:
        raise TableLogError(f"{path} isn't there any more: the table was changed or dropped meanwhile; try again")
    return found


def _log_of(metadata: dict[str, Any], confirmed: set[int] | None = None) -> TableLog:
    snapshots = metadata.get("snapshots") or []
    parents = {snapshot["snapshot-id"]: snapshot.get("parent-snapshot-id") for snapshot in snapshots}
    branches: dict[int, list[str | None]] = {each["snapshot-id"]: [None] for each in metadata.get("snapshot-log") or ()}
    for name in sorted(_heads(metadata), key=lambda name: name != _MAIN):
        head: int | None = _heads(metadata)[name]
        while head is not None and head in parents:
            line = branches.setdefault(head, [])
            branch = None if name == _MAIN else name
            if branch not in line:
                line.append(branch)
            head = parents[head]
    known = {parent: PickedCommit(parent, parents[parent], tuple(branches.get(parent, ()))) for parent in parents}
    commits = [_commit(snapshot, known, confirmed) for snapshot in snapshots]
    return TableLog(Format.ICEBERG, UUID(metadata["table-uuid"]), tuple(commits))


def _heads(metadata: dict[str, Any]) -> dict[str, int]:
    refs = metadata.get("refs") or {}
    found = {name: each["snapshot-id"] for name, each in refs.items() if each.get("type") == "branch"}
    current = metadata.get("current-snapshot-id")
    if current not in {None, -1}:
        found.setdefault(_MAIN, current)
    return found


def _commit(snapshot: dict[str, Any], known: Mapping[int, PickedCommit], confirmed: set[int] | None) -> LogCommit:
    summary = snapshot.get("summary") or {}
    kind = ICEBERG_KINDS.get(summary.get("operation", ""), CommitKind.OTHER)
    replaced = OverwriteScope.NOTHING if kind in _KEEPS_ALL else OverwriteScope.UNKNOWN
    number = snapshot["snapshot-id"]
    picked = known.get(_count(summary, _PICKED) or 0)  # a user's property may have this name, too
    if picked is not None:  # of overwrites Iceberg only picks those of partitions
        kind, replaced = CommitKind.CHERRY_PICK, OverwriteScope.PART if replaced is OverwriteScope.UNKNOWN else replaced
    return LogCommit(
        snapshot=number,
        time=snapshot["timestamp-ms"] * 1_000,
        kind=kind,
        replaced=replaced,
        parent=snapshot.get("parent-snapshot-id"),
        schema_id=snapshot.get("schema-id"),
        branches=known[number].branches,
        rows=_count(summary, "added-records"),
        bytes=_count(summary, "added-files-size"),
        is_confirmed=confirmed is None or number in confirmed,
        picked=picked,
    )


def _count(summary: dict[str, str], key: str) -> int | None:
    text = summary.get(key)
    return int(text) if text is not None and text.isdecimal() else None
