"""Commits that no plan tells of: those of Delta's API, and of commands that failed behind their commit."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final

from headwater.events import AlterTable, Format
from headwater.events.catalog import ModificationCause
from headwater.events.changes import OtherChange
from headwater.events.jobs import CommitKind, SinkSchema
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.formats.delta.commits import HOOK, DeltaCommit, kind_of, parse_commit
from headwater.listeners.capture.formats.delta.schema_changes import alter_event, name_of
from headwater.listeners.capture.formats.delta.table_refs import dataset_at, generation_of
from headwater.listeners.capture.formats.delta.write_results import output_of
from headwater.listeners.capture.formats.protocol import OutsideCommit
from headwater.listeners.capture.formats.relations import table_name

_CREATING_KINDS: Final = frozenset({CommitKind.CREATE, CommitKind.REPLACE})
_MOST_LEFT: Final = 1_000
_left: Final[OrderedDict[str, None]] = OrderedDict()


def leave_to_committer(transaction: str) -> None:
    """Report nothing of a transaction of Delta's API: who commits it also reports it, with what it was made from."""
    _left[transaction] = None
    while len(_left) > _MOST_LEFT:
        _left.popitem(last=False)


def outside_commit(fact: Mapping[str, Any], context: CaptureContext) -> OutsideCommit | None:
    """A table that was made is none of it: whether a catalog knows it, only the catalog tells."""
    if fact.get("hook") != HOOK or fact.get("action") != "committed":
        return None
    commit = parse_commit(fact)
    if commit.transaction in _left:
        return OutsideCommit()
    kind = kind_of(commit)
    if kind in _CREATING_KINDS:
        return OutsideCommit(whole=False)
    if kind is CommitKind.ALTER:
        return OutsideCommit(
            altered=(
                alter_event(commit, None, None, context, ModificationCause.STATEMENT)
                or _has_unseen_change(commit, context),
            )
        )
    sink = SinkSchema(dataset=commit.dataset(context.environment), table=table_name(commit.table), format=Format.DELTA)
    return OutsideCommit((output_of(commit, sink),), whole=commit.version is not None)


def _has_unseen_change(commit: DeltaCommit, context: CaptureContext) -> AlterTable:
    """The log's metadata is as it was before: another version of the protocol."""
    return AlterTable(
        context=context.session_catalog().context,
        identifier=name_of(commit),
        dataset=dataset_at(commit.path, context),
        generation=generation_of(commit.generation),
        format=Format.DELTA,
        produced=commit.version,
        parent=commit.parent,
        changes=(OtherChange(what=commit.operation),),
    )
