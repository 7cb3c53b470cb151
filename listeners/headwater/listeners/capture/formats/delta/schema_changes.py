"""How commits changed what a table is: from the metadata before and after, which the hook saw in memory."""

from __future__ import annotations

from typing import Final

from headwater.events import AlterTable, Format, TableName
from headwater.events.catalog import ModificationCause
from headwater.events.changes import SetClustering, TableChange
from headwater.events.identity.text import joined
from headwater.events.jobs import CommitKind
from headwater.events.tables import Table
from headwater.listeners.capture.context import SESSION_CATALOG, CaptureContext, SessionNamedCatalog
from headwater.listeners.capture.formats.delta.commit_kinds import kind_of
from headwater.listeners.capture.formats.delta.commits import DeltaCommit
from headwater.listeners.capture.formats.delta.metadata import parse_clustering, table_of
from headwater.listeners.capture.formats.delta.metadata_diff import metadata_changes
from headwater.listeners.capture.formats.delta.table_refs import dataset_at, generation_of
from headwater.listeners.capture.formats.delta.write_results import commits_to
from headwater.listeners.capture.formats.protocol import WriteTarget
from headwater.listeners.capture.formats.relations import table_name
from headwater.listeners.capture.statements import Statement

_CREATING_OPERATIONS: Final = ("CREATE", "REPLACE TABLE", "CLONE", "CONVERT")
_RESTORING_OPERATIONS: Final = frozenset({"RESTORE"})
"""Operations whose change of the schema is what was asked for."""


def schema_changes(target: WriteTarget, statement: Statement, context: CaptureContext) -> tuple[AlterTable, ...]:
    commits = [c for c in commits_to(target, statement.facts) if not _makes_table(c)]
    events = (_alter_event_of_write(commit, target, context) for commit in commits)
    return tuple(event for event in events if event is not None)


def _makes_table(commit: DeltaCommit) -> bool:
    """Then a CreateTable tells of it. What overwrites a table in place is no creation, whatever Delta calls it."""
    return commit.operation.startswith(_CREATING_OPERATIONS) and kind_of(commit) is not CommitKind.OVERWRITE


def _alter_event_of_write(commit: DeltaCommit, target: WriteTarget, context: CaptureContext) -> AlterTable | None:
    cause = ModificationCause.STATEMENT if commit.operation in _RESTORING_OPERATIONS else ModificationCause.WRITE
    return alter_event(commit, target.sink.table, target.catalog, context, cause)


def alter_event(
    commit: DeltaCommit,
    name: TableName | None,
    catalog: SessionNamedCatalog | None,
    context: CaptureContext,
    cause: ModificationCause,
) -> AlterTable | None:
    """None where nothing of the table changed that anybody would see."""
    changes = changes_of(commit)
    if not changes:
        return None
    before, after = describe_table(commit, commit.before), describe_table(commit, commit.metadata)
    return AlterTable(
        context=(catalog or context.session_catalog()).context,
        cause=cause,
        identifier=name or name_of_path(commit.path),
        dataset=dataset_at(commit.path, context),
        generation=generation_of(commit.generation),
        format=Format.DELTA,
        produced=commit.version,
        parent=commit.parent,
        changes=changes,
        table=before and _clustered(before, commit, "oldClusteringColumns"),
        new_table=after and _clustered(after, commit, "newClusteringColumns"),
    )


def changes_of(commit: DeltaCommit) -> tuple[TableChange, ...]:
    changes: tuple[TableChange, ...] = ()
    if commit.before is not None and commit.metadata is not None:
        changes = metadata_changes(commit.before, commit.metadata)
    if commit.operation == "CLUSTER BY":
        changes = (*changes, SetClustering(columns=parse_clustering(commit.parameters.get("newClusteringColumns"))))
    return changes


def _clustered(table: Table, commit: DeltaCommit, parameter: str) -> Table:
    columns = parse_clustering(commit.parameters.get(parameter))
    return table.model_copy(update={"clustering": columns}) if columns else table


def describe_table(commit: DeltaCommit, metadata: object) -> Table | None:
    kind = None if commit.table is None else commit.table.get("type")
    return table_of(metadata, commit.path, kind) if isinstance(metadata, dict) else None


def name_of(commit: DeltaCommit) -> TableName:
    return table_name(commit.table) or name_of_path(commit.path)


def name_of_path(path: str) -> TableName:
    """As Spark calls a table that no catalog has: delta.`/path`."""
    return TableName(catalog=SESSION_CATALOG, database=joined(["delta"]), table=path)
