"""Commits that no plan tells of: those of Delta's API, and of commands that failed behind their commit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from headwater.events import AlterTable, Cause, CommitKind, Format, OtherChange, ShapedSink
from headwater.listeners.capture.formats.delta.commits import HOOK, Commit, commit_of
from headwater.listeners.capture.formats.delta.evolution import altered, name_of
from headwater.listeners.capture.formats.delta.kinds import kind_of
from headwater.listeners.capture.formats.delta.places import dataset_at, life_of
from headwater.listeners.capture.formats.delta.written import output_of
from headwater.listeners.capture.formats.protocol import Loose
from headwater.listeners.capture.formats.relations import table_name
from headwater.listeners.capture.scene import Scene

_MADE: Final = frozenset({CommitKind.CREATE, CommitKind.REPLACE})


def loose_commit(fact: Mapping[str, Any], scene: Scene) -> Loose | None:
    """A table that was made is none of it: whether a catalog knows it, only the catalog tells."""
    if fact.get("hook") != HOOK or fact.get("did") != "committed":
        return None
    commit = commit_of(fact)
    kind = kind_of(commit)
    if kind in _MADE:
        return Loose(whole=False)
    if kind is CommitKind.ALTER:
        return Loose(altered=(altered(commit, None, None, scene, Cause.STATEMENT) or _unseen(commit, scene),))
    sink = ShapedSink(dataset=commit.dataset(scene.site), table=table_name(commit.table), format=Format.DELTA)
    return Loose((output_of(commit, sink),), whole=commit.version is not None)


def _unseen(commit: Commit, scene: Scene) -> AlterTable:
    """The log's metadata is as it was before: another version of the protocol."""
    return AlterTable(
        context=scene.session_catalog().context,
        identifier=name_of(commit),
        dataset=dataset_at(commit.path, scene),
        life=life_of(commit.life),
        format=Format.DELTA,
        produced=commit.version,
        parent=commit.parent,
        changes=(OtherChange(what=commit.operation),),
    )
