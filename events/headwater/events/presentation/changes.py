"""What ALTER TABLE changed, in words close to its SQL."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from headwater.events import changes as c
from headwater.events.base import Model
from headwater.events.presentation.phrases import (
    LONGEST_NAME,
    joined,
    labelled,
    pairs,
    path,
    paths,
    shortened,
    transform,
    type_name,
)
from headwater.events.tables import Constraint, SortField


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
