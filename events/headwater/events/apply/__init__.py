"""What a table is after a list of changes.

`apply` reads nothing but its arguments. Names are found without regard to case, as Spark does by default, and what is
there keeps its spelling. A column keeps its place and its description when it is renamed, and whatever refers to it
follows; one that the partitioning, the ordering, the clustering, the primary key, a watermark or a constraint refers to
can't be dropped, because no format does that (a NOT NULL goes with its column). A change that can't have happened to
this table raises ChangeError: then the description isn't that of the table, and must be read anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from headwater.events.apply import columns, layout
from headwater.events.apply.names import ChangeError, ImpossibleChangeError, Names
from headwater.events.changes import (
    AddColumn,
    AddConstraint,
    AddPartition,
    AddPartitionField,
    ChangeDefault,
    ChangeNullability,
    DropColumn,
    DropConstraint,
    DropPartition,
    DropPartitionField,
    MoveColumn,
    OtherChange,
    RecommentColumn,
    RemoveProperty,
    RenameColumn,
    RenamePartition,
    RenameTable,
    ReplacePartitionField,
    RetypeColumn,
    SetClustering,
    SetComment,
    SetLocation,
    SetOrdering,
    SetPartitionLocation,
    SetPrimaryKey,
    SetProperty,
    TableChange,
)
from headwater.events.tables import Table
from headwater.events.types import TypeTextError

__all__ = ["HANDLED", "ChangeError", "apply"]

_HANDLERS: Final[dict[type, Callable[[Table, Any, Names], Table]]] = {
    AddColumn: columns.add_column,
    DropColumn: columns.drop_column,
    RenameColumn: columns.rename_column,
    RetypeColumn: columns.retype_column,
    RecommentColumn: columns.recomment_column,
    MoveColumn: columns.move_column,
    ChangeNullability: columns.change_nullability,
    ChangeDefault: columns.change_default,
    SetProperty: layout.set_property,
    RemoveProperty: layout.remove_property,
    SetComment: layout.set_comment,
    SetLocation: layout.set_location,
    RenameTable: layout.no_change,
    AddPartition: layout.no_change,
    DropPartition: layout.no_change,
    RenamePartition: layout.no_change,
    SetPartitionLocation: layout.no_change,
    AddPartitionField: layout.add_partition_field,
    DropPartitionField: layout.drop_partition_field,
    ReplacePartitionField: layout.replace_partition_field,
    SetOrdering: layout.set_ordering,
    SetClustering: layout.set_clustering,
    SetPrimaryKey: layout.set_primary_key,
    AddConstraint: layout.add_constraint,
    DropConstraint: layout.drop_constraint,
    OtherChange: layout.no_change,
}
HANDLED: Final = frozenset(_HANDLERS)
"""The kinds of changes that `apply` knows: all of the union."""


def apply(changes: Iterable[TableChange], table: Table, *, case_sensitive: bool = False) -> Table:
    """The table after the changes, in their order. `case_sensitive` is what spark.sql.caseSensitive was."""
    names = Names(case_sensitive)
    for index, change in enumerate(changes):
        table = _apply_change(index, change, table, names)
    return table


def _apply_change(index: int, change: TableChange, table: Table, names: Names) -> Table:
    try:
        return _HANDLERS[type(change)](table, change, names)
    except (ImpossibleChangeError, TypeTextError) as error:
        raise ChangeError(index, change, str(error)) from error
