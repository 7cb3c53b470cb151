"""What happened to databases, tables, views, tags and branches, in words.

What ALTER TABLE changed, in words close to its SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from headwater.events import changes as c
from headwater.events.base import Model
from headwater.events.catalog import (
    AlterDatabase,
    AlterTable,
    AlterView,
    BranchMerged,
    CatalogModification,
    CorrectionSwitched,
    CreateBranch,
    CreateDatabase,
    CreateTable,
    CreateTag,
    CreateView,
    DatabaseName,
    DropBranch,
    DropDatabase,
    DropTable,
    DropTag,
    DropView,
    MainReplaced,
    ModificationCause,
    ModificationEffect,
    TableModification,
    Truncate,
)
from headwater.events.presentation.phrases import (
    LONGEST_NAME,
    column_names,
    joined,
    labelled,
    listed,
    pairs,
    path,
    paths,
    place,
    shortened,
    step,
    transform,
    type_name,
)
from headwater.events.tables import Constraint, Database, SortField, Table, View


def describe_change(change: Model) -> str:
    """One change. Every kind of change has its words in the table below."""
    return _WORDS[type(change)](change)


def _add_column(change: c.AddColumn) -> str:
    null = "" if change.nullable else "NOT NULL"
    return joined(f"add {path(change.path)}", type_name(change.type), null, _position(change.position))


def _position(position: c.ColumnPosition | None) -> str:
    if position is None:
        return ""
    return "first" if position.after is None else f"after {position.after}"


def _nullability(change: c.ChangeNullability) -> str:
    return f"{path(change.path)} {'may be null' if change.nullable else 'NOT NULL'}"


def _default(change: c.ChangeDefault) -> str:
    text = f"default {change.default}" if change.default is not None else "drop the default"
    return f"{path(change.path)} {shortened(text, LONGEST_NAME)}"


def _property(change: c.SetProperty) -> str:
    return f"set {pairs({change.key: change.value})}"


def _comment(change: c.SetComment) -> str:
    return "drop the comment" if change.comment is None else f"comment {shortened(repr(change.comment), LONGEST_NAME)}"


def _ordered_by(field: SortField) -> str:
    return joined(transform(field.by), "desc" if field.descending else "")


def _constraint(constraint: Constraint) -> str:
    kind = constraint.kind.value.replace("_", " ").lower()
    return joined(f"add constraint {constraint.name}", kind, labelled("on", paths(constraint.columns)))


_WORDS: Final[Mapping[type[Model], Callable[[Any], str]]] = {
    c.AddColumn: _add_column,
    c.DropColumn: lambda change: f"drop {path(change.path)}",
    c.RenameColumn: lambda change: f"rename {path(change.path)} to {change.new_name}",
    c.RetypeColumn: lambda change: f"{path(change.path)} becomes {type_name(change.type)}",
    c.RecommentColumn: lambda change: f"comment on {path(change.path)}",
    c.MoveColumn: lambda change: f"move {path(change.path)} {_position(change.position)}",
    c.ChangeNullability: _nullability,
    c.ChangeDefault: _default,
    c.SetProperty: _property,
    c.RemoveProperty: lambda change: f"unset {change.key}",
    c.SetComment: _comment,
    c.SetLocation: lambda change: f"move to {change.location}",
    c.RenameTable: lambda change: f"rename to {change.table}",
    c.AddPartition: lambda change: f"add partition {pairs(change.partition)}",
    c.DropPartition: lambda change: f"drop partition {pairs(change.partition)}",
    c.RenamePartition: lambda change: f"rename partition {pairs(change.partition)} to {pairs(change.new_partition)}",
    c.SetPartitionLocation: lambda change: f"partition {pairs(change.partition)} at {change.location}",
    c.AddPartitionField: lambda change: f"partition by {transform(change.transform)} too",
    c.DropPartitionField: lambda change: f"partition no more by {transform(change.transform)}",
    c.ReplacePartitionField: lambda change: (
        f"partition by {transform(change.new_transform)} instead of {transform(change.transform)}"
    ),
    c.SetOrdering: lambda change: f"write ordered by {', '.join(map(_ordered_by, change.ordering)) or 'nothing'}",
    c.SetClustering: lambda change: f"cluster by {paths(change.columns) or 'nothing'}",
    c.SetPrimaryKey: lambda change: f"primary key ({paths(change.columns)})",
    c.AddConstraint: lambda change: _constraint(change.constraint),
    c.DropConstraint: lambda change: f"drop constraint {change.name}",
    c.OtherChange: lambda change: shortened(change.what, LONGEST_NAME) or "a change that has no word here",
}


MAIN = "main"


def circumstances(event: CatalogModification) -> str:
    """What makes the modification less than a plain statement."""
    cause = (
        f"(by a {event.cause.value.lower()})"
        if event.cause in {ModificationCause.PROCEDURE, ModificationCause.WRITE}
        else ""
    )
    effect = "(it isn't known whether it took effect)" if event.effect is not ModificationEffect.APPLIED else ""
    return joined(cause, effect)


def create_database(event: CreateDatabase) -> str:
    return joined(_database(event.identifier), labelled("at", event.database.location), circumstances(event))


def alter_database(event: AlterDatabase) -> str:
    changed = _database_changes(event.database or Database(), event.new_database)
    return joined(_database(event.identifier), changed, circumstances(event))


def drop_database(event: DropDatabase) -> str:
    return joined(_database(event.identifier), "CASCADE" if event.cascade else "", circumstances(event))


def create_table(event: CreateTable) -> str:
    how = joined("AS SELECT" if event.as_select else "", "in place of the old one" if event.replaced else "")
    return joined(_table(event), _description(event.table), how, _version_step(event), circumstances(event))


def alter_table(event: AlterTable) -> str:
    changes = listed(event.changes, describe_change, by="; ")
    return joined(
        f"{_table(event)}:", changes or "(what changed isn't known)", _version_step(event), circumstances(event)
    )


def drop_table(event: DropTable) -> str:
    return joined(_table(event), "PURGE" if event.purge else "", circumstances(event))


def create_view(event: CreateView) -> str:
    replaced = "in place of the old one" if event.replaced else ""
    return joined(_table(event), column_names(event.view.columns), _sources(event.view), replaced, circumstances(event))


def alter_view(event: AlterView) -> str:
    renamed = labelled("renamed to", event.renamed_to)
    changed = _sources(event.new_view) if event.new_view else ""
    return joined(_table(event), renamed, changed, circumstances(event))


def drop_view(event: DropView) -> str:
    return joined(_table(event), circumstances(event))


def truncate(event: Truncate) -> str:
    which = "; ".join(map(pairs, event.partitions)) if event.partitions else "all rows"
    return joined(f"{_table(event)}:", which, _version_step(event), circumstances(event))


def create_tag(event: CreateTag) -> str:
    how = joined(labelled("kept", event.retention), "moved" if event.replaced else "", by=", ")
    return joined(_table(event), f"tag {event.tag}", _at(event.snapshot), how and f"({how})", circumstances(event))


def drop_tag(event: DropTag) -> str:
    return joined(_table(event), f"tag {event.tag}", circumstances(event))


def create_branch(event: CreateBranch) -> str:
    origin = joined(labelled("from branch", event.from_branch), labelled("from tag", event.tag), _at(event.snapshot))
    how = joined(labelled("kept", event.retention), "in place of the old one" if event.replaced else "", by=", ")
    return joined(_table(event), f"branch {event.branch}", origin, how and f"({how})", circumstances(event))


def drop_branch(event: DropBranch) -> str:
    return joined(_table(event), f"branch {event.branch}", circumstances(event))


def branch_merged(event: BranchMerged) -> str:
    merged = f"branch {event.branch} into {event.into or MAIN}"
    return joined(_table(event), merged, step(event.previous_snapshot, event.snapshot), circumstances(event))


def main_replaced(event: MainReplaced) -> str:
    replaced = f"branch {event.branch} took the place of {event.previous or MAIN}"
    return joined(_table(event), replaced, step(event.previous_snapshot, event.snapshot), circumstances(event))


def correction_switched(event: CorrectionSwitched) -> str:
    switched = f"{event.correction} of {event.wrong_table} @{event.wrong_snapshot} switched"
    return joined(_table(event), switched, step(event.previous_snapshot, event.snapshot), circumstances(event))


def _database(name: DatabaseName) -> str:
    return joined(name.catalog, name.database, by=".")


def _table(event: TableModification) -> str:
    return joined(place(None, event.identifier), labelled("branch", event.on_branch))


def _description(table: Table) -> str:
    partitions = ", ".join(map(transform, table.partitioning))
    return joined(column_names(table.columns), labelled("partitioned by", partitions))


def _sources(view: View) -> str:
    return labelled("←", listed(view.sources, lambda source: place(source.dataset, source.table)))


def _version_step(event: TableModification) -> str:
    return step(event.parent, event.produced)


def _at(snapshot: int | None) -> str:
    return "" if snapshot is None else f"@{snapshot}"


def _database_changes(old: Database, new: Database) -> str:
    changed = {key: value for key, value in new.properties.items() if old.properties.get(key) != value}
    gone = [key for key in old.properties if key not in new.properties]
    return joined(
        labelled("set", pairs(changed)),
        labelled("unset", ", ".join(gone)),
        labelled("moved to", new.location if new.location != old.location else None),
        labelled("comment", repr(new.comment) if new.comment != old.comment else None),
        by="; ",
    )
