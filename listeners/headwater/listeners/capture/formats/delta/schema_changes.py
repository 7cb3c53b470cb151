"""How commits changed what a table is: from the metadata before and after, which the hook saw in memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from headwater.events import AlterTable, Format, TableName
from headwater.events.apply import ChangeError, apply
from headwater.events.catalog import ModificationCause
from headwater.events.changes import (
    AddConstraint,
    AddPartitionField,
    DropConstraint,
    DropPartitionField,
    OtherChange,
    RemoveProperty,
    SetClustering,
    SetComment,
    SetProperty,
    TableChange,
)
from headwater.events.identity.text import joined
from headwater.events.jobs import CommitKind
from headwater.events.tables import Column, Table, Transform
from headwater.listeners.capture.context import SESSION_CATALOG, CaptureContext, SessionNamedCatalog
from headwater.listeners.capture.formats.delta.commits import DeltaCommit, kind_of
from headwater.listeners.capture.formats.delta.metadata import (
    PHYSICAL_NAME,
    columns_from_metadata,
    constraints_of,
    parse_clustering,
    properties_of,
    table_of,
)
from headwater.listeners.capture.formats.delta.table_refs import dataset_at, generation_of
from headwater.listeners.capture.formats.delta.write_results import commits_to
from headwater.listeners.capture.formats.protocol import WriteTarget
from headwater.listeners.capture.formats.relations import table_name
from headwater.listeners.capture.formats.schema_diff import Field, Fields, SchemaDiff, fields_in
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


def metadata_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[TableChange, ...]:
    return (*_columns(before, after), *_partitioning(before, after), *_configuration(before, after))


def _columns(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[TableChange, ...]:
    """Proved by applying them; changes that don't lead there aren't recorded one by one."""
    old, new = columns_from_metadata(before), columns_from_metadata(after)
    if old == new:
        return ()
    changes = tuple(_SCHEMA_DIFF.of(fields_in(before["schema"]), fields_in(after["schema"])))
    unbound = table_of({**before, "partitions": [], "configuration": {}}, "")
    try:
        if _visible_table(apply(changes, unbound, case_sensitive=True)) == _visible_table(
            unbound.model_copy(update={"columns": new})
        ):
            return changes
    except ChangeError:
        pass
    return (OtherChange(what="the schema"),)


def _visible_table(table: Table) -> list[tuple[object, ...]]:
    return [(c.name, c.type, c.nullable, c.comment, c.default) for c in table.columns]


def _pair_columns(old: Fields, new: Fields) -> Callable[[Field], str]:
    """By the physical name, which a rename keeps, where the table has one for each column; else by name."""
    physical = all(PHYSICAL_NAME in field.get("metadata", {}) for field in (*old, *new))
    return lambda field: str(field["metadata"][PHYSICAL_NAME] if physical else field["name"].lower())


def _column(field: Field) -> Column:
    return columns_from_metadata({"schema": json.dumps({"type": "struct", "fields": [field]})})[0]


_SCHEMA_DIFF: Final = SchemaDiff(_column, _pair_columns)


def _partitioning(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[TableChange]:
    old, new = before.get("partitions", []), after.get("partitions", [])
    if old == new:
        return
    for name in old:
        yield DropPartitionField(transform=Transform(columns=((name,),)))
    for name in new:
        yield AddPartitionField(transform=Transform(columns=((name,),)))


def _configuration(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[TableChange]:
    old, new = properties_of(before["configuration"]), properties_of(after["configuration"])
    yield from (SetProperty(key=key, value=text) for key, text in new.items() if old.get(key) != text)
    yield from (RemoveProperty(key=key) for key in old if key not in new)
    checks, new_checks = constraints_of(before["configuration"]), constraints_of(after["configuration"])
    yield from (DropConstraint(name=check.name) for check in checks if check not in new_checks)
    yield from (AddConstraint(constraint=check) for check in new_checks if check not in checks)
    if before.get("description") != after.get("description"):
        yield SetComment(comment=after.get("description"))
