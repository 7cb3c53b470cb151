"""Delta's log: a file of JSON lines for each version, and checkpoints, of which only the table's id is needed."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final
from uuid import UUID

from headwater.consumers.reconcile.files import LogFile, LogFiles
from headwater.consumers.reconcile.model import KEEPS_ROWS, LogCommit, TableLog, TableLogError
from headwater.errors import ConfigurationError
from headwater.events.commit_words import delta_commit_kind
from headwater.events.jobs import CommitKind, OverwriteScope
from headwater.events.names import Generation
from headwater.events.scalars import Format
from headwater.plugins import extra_command

_LOG: Final = "_delta_log"
_VERSION: Final = re.compile(r"(\d{20})\.json")
_CHECKPOINT: Final = re.compile(r"(\d{20})\.checkpoint(?:\.[^.]+)*\.(parquet|json)")
_ALL_NEW: Final = frozenset({CommitKind.CREATE, CommitKind.REPLACE, CommitKind.RESTORE, CommitKind.CLONE})


def read_log(files: LogFiles) -> TableLog | None:
    """Read the log; None where there is no table of this format."""
    listed = files.files_in(_LOG)
    versions = [(int(found[1]), each) for each in listed if (found := _VERSION.fullmatch(each.name))]
    if not versions:
        return None
    read: list[tuple[int, LogFile, list[dict[str, Any]]]] = []
    for number, each in versions:
        content = files.read(f"{_LOG}/{each.name}")
        if content is not None:  # else the log was cleaned meanwhile
            read.append((number, each, list(_actions(content, each.name))))
    return TableLog(Format.DELTA, _generation([actions for *_, actions in read], files, listed), tuple(_commits(read)))


def _actions(content: bytes, name: str) -> Iterator[dict[str, Any]]:
    for line in content.splitlines():
        if line.strip():
            try:
                yield json.loads(line)
            except ValueError:
                raise TableLogError(f"{_LOG}/{name} isn't JSON: the file may be damaged") from None


def _generation(
    versions: Sequence[Sequence[dict[str, Any]]], files: LogFiles, listed: Sequence[LogFile]
) -> Generation | None:
    """Return the table's id: from the newest version that sets it, else from the newest checkpoint."""
    for actions in reversed(versions):
        for action in actions:
            if "metaData" in action:
                return _id(action["metaData"].get("id"))
    for each in sorted(listed, key=lambda file: file.name, reverse=True):
        kind = _CHECKPOINT.fullmatch(each.name)
        content = files.read(f"{_LOG}/{each.name}") if kind else None
        if kind is None or content is None:
            continue
        found = _id_in_checkpoint(content, kind[2], each.name)
        if found is not None:
            return _id(found)
    return None


def _id_in_checkpoint(content: bytes, kind: str, name: str) -> str | None:
    if kind == "json":
        return next((action["metaData"]["id"] for action in _actions(content, name) if action.get("metaData")), None)
    try:
        from pyarrow import parquet  # noqa: PLC0415 - an extra
    except ImportError:
        message = f"only a checkpoint has this table's id; what reads it comes with {extra_command('reconcile')}"
        raise ConfigurationError(message) from None
    column = parquet.read_table(io.BytesIO(content), columns=["metaData"])["metaData"].to_pylist()
    return next((each["id"] for each in column if each and each.get("id")), None)


def _id(text: str | None) -> Generation | None:
    """Return the id as listeners have it: a UUID by custom, any text by the protocol."""
    if not text:
        return None
    try:
        return UUID(text)
    except ValueError:
        return text


def _commits(read: Sequence[tuple[int, LogFile, list[dict[str, Any]]]]) -> Iterator[LogCommit]:
    """Yield the commits, with what their ids say of each: which one the table had before the first isn't looked for."""
    known: str | None = None
    for number, file, actions in read:
        new = next((action["metaData"].get("id") for action in actions if action.get("metaData")), None)
        keeps_id = new is None or (None if known is None else new == known)
        known = new or known
        yield _commit(number, file, actions, keeps_id)


def _commit(number: int, file: LogFile, actions: Sequence[dict[str, Any]], keeps_id: bool | None) -> LogCommit:
    info: dict[str, Any] = next((action["commitInfo"] for action in actions if action.get("commitInfo")), {})
    millis = info.get("inCommitTimestamp") or info.get("timestamp")
    words = (info.get("operation") or "", info.get("operationParameters") or {})
    kind = delta_commit_kind(*words, is_first=not number, keeps_id=keeps_id)
    return LogCommit(
        snapshot=number,
        time=file.modified if millis is None else int(millis) * 1_000,
        kind=kind,
        replaced=_scope(kind),
        parent=number - 1 if number else None,
        rows=_rows(info, kind),
    )


def _scope(kind: CommitKind) -> OverwriteScope:
    """How much an overwrite or a delete replaced isn't guessed: of a dynamic one the log doesn't tell."""
    if kind in KEEPS_ROWS or kind is CommitKind.APPEND:
        return OverwriteScope.NOTHING
    return OverwriteScope.ALL if kind in _ALL_NEW else OverwriteScope.UNKNOWN


def _rows(info: dict[str, Any], kind: CommitKind) -> int | None:
    text = (info.get("operationMetrics") or {}).get("numOutputRows")
    return int(text) if kind is CommitKind.APPEND and isinstance(text, str) and text.isdecimal() else None
