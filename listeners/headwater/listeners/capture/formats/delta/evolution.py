"""How commits changed what a table is: from the metadata before and after, which the hook saw in memory."""

from __future__ import annotations

from typing import Final

from headwater.events import AlterTable, Cause, Format, SetClustering, TableChange, TableName
from headwater.events.identity.text import joined
from headwater.events.tables import Table
from headwater.listeners.capture.formats.delta.commits import Commit
from headwater.listeners.capture.formats.delta.differences import differences
from headwater.listeners.capture.formats.delta.metadata import clustered_by, table_of
from headwater.listeners.capture.formats.delta.places import dataset_at, life_of
from headwater.listeners.capture.formats.delta.written import commits_to
from headwater.listeners.capture.formats.protocol import Target
from headwater.listeners.capture.formats.relations import table_name
from headwater.listeners.capture.scene import SESSION_CATALOG, NamedCatalog, Scene
from headwater.listeners.capture.statements import Statement

_TOLD_AS_CREATION: Final = ("CREATE", "REPLACE TABLE", "CLONE", "CONVERT")
_OF_ITSELF: Final = frozenset({"RESTORE"})
"""Operations whose change of the schema is what was asked for."""


def evolved(target: Target, statement: Statement, scene: Scene) -> tuple[AlterTable, ...]:
    commits = [c for c in commits_to(target, statement.facts) if not c.operation.startswith(_TOLD_AS_CREATION)]
    told = (_altered_by_write(commit, target, scene) for commit in commits)
    return tuple(each for each in told if each is not None)


def _altered_by_write(commit: Commit, target: Target, scene: Scene) -> AlterTable | None:
    cause = Cause.STATEMENT if commit.operation in _OF_ITSELF else Cause.WRITE
    return altered(commit, target.sink.table, target.catalog, scene, cause)


def altered(
    commit: Commit, name: TableName | None, catalog: NamedCatalog | None, scene: Scene, cause: Cause
) -> AlterTable | None:
    """None where nothing of the table changed that anybody would see."""
    changes = changes_of(commit)
    if not changes:
        return None
    before, after = described(commit, commit.before), described(commit, commit.metadata)
    return AlterTable(
        context=(catalog or scene.session_catalog()).context,
        cause=cause,
        identifier=name or path_name(commit.path),
        dataset=dataset_at(commit.path, scene),
        life=life_of(commit.life),
        format=Format.DELTA,
        produced=commit.version,
        parent=commit.parent,
        changes=changes,
        table=before and _clustered(before, commit, "oldClusteringColumns"),
        new_table=after and _clustered(after, commit, "newClusteringColumns"),
    )


def changes_of(commit: Commit) -> tuple[TableChange, ...]:
    told: tuple[TableChange, ...] = ()
    if commit.before is not None and commit.metadata is not None:
        told = differences(commit.before, commit.metadata)
    if commit.operation == "CLUSTER BY":
        told = (*told, SetClustering(columns=clustered_by(commit.parameters.get("newClusteringColumns"))))
    return told


def _clustered(table: Table, commit: Commit, parameter: str) -> Table:
    columns = clustered_by(commit.parameters.get(parameter))
    return table.model_copy(update={"clustering": columns}) if columns else table


def described(commit: Commit, metadata: object) -> Table | None:
    kind = None if commit.table is None else commit.table.get("type")
    return table_of(metadata, commit.path, kind) if isinstance(metadata, dict) else None


def name_of(commit: Commit) -> TableName:
    return table_name(commit.table) or path_name(commit.path)


def path_name(path: str) -> TableName:
    """As Spark calls a table that no catalog has: delta.`/path`."""
    return TableName(catalog=SESSION_CATALOG, database=joined(["delta"]), table=path)
