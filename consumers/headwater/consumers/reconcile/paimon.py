"""Paimon's log: a JSON file for each snapshot, on main and in a directory for each branch."""

from __future__ import annotations

import re
from typing import Any, Final

from headwater.consumers.reconcile.files import LogFiles, read_json
from headwater.consumers.reconcile.model import LogCommit, TableLog
from headwater.events.jobs import CommitKind, OverwriteScope
from headwater.events.scalars import Format

_SNAPSHOT: Final = re.compile(r"snapshot-(\d+)")
_BRANCH: Final = re.compile(r"branch-(.+)", re.DOTALL)


def read_log(files: LogFiles) -> TableLog | None:
    """Read the log; None where there is no table of this format.

    A branch begins with copies of the snapshot that it was made from, and a merged branch leaves copies on main: a file
    of the same content is the same commit, which stands on several branches then.
    """
    schema = read_json(files, "schema/schema-0")
    if schema is None:
        return None
    directories = files.directories_in("branch")
    branches = [(found[1], f"branch/{each}/") for each in directories if (found := _BRANCH.fullmatch(each))]
    lines: list[tuple[str | None, str]] = [(None, ""), *branches]
    commits: dict[tuple[Any, ...], LogCommit] = {}
    for branch, directory in lines:
        for content in _snapshots(files, f"{directory}snapshot"):
            key = (content["id"], content.get("commitUser"), content.get("commitIdentifier"), content["timeMillis"])
            known = commits.get(key)
            commits[key] = _commit(content, (branch,) if known is None else (*known.branches, branch))
    millis = schema.get("timeMillis")
    generation = None if millis is None else str(int(millis))
    return TableLog(Format.PAIMON, generation, tuple(commits.values()), reuses_numbers=True)


def _snapshots(files: LogFiles, directory: str) -> list[dict[str, Any]]:
    numbers = sorted(int(found[1]) for each in files.files_in(directory) if (found := _SNAPSHOT.fullmatch(each.name)))
    read = (read_json(files, f"{directory}/snapshot-{number}") for number in numbers)
    return [each for each in read if each is not None]  # one that isn't there any more has expired meanwhile


def _commit(content: dict[str, Any], branches: tuple[str | None, ...]) -> LogCommit:
    number = int(content["id"])
    kind = CommitKind.__members__.get(content.get("commitKind", ""), CommitKind.OTHER)
    compacts = kind in {CommitKind.COMPACT, CommitKind.ANALYZE}
    added = content.get("deltaRecordCount")
    return LogCommit(
        snapshot=number,
        time=int(content["timeMillis"]) * 1_000,
        kind=kind,
        replaced=OverwriteScope.NOTHING if compacts else OverwriteScope.UNKNOWN,
        parent=number - 1 if number > 1 else None,
        schema_id=content.get("schemaId"),
        branches=branches,
        rows=int(added) if kind is CommitKind.APPEND and isinstance(added, int) and added > 0 else None,
    )
