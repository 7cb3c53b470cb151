"""What ALTER TABLE, or a write that evolves a schema, changed: one small type per kind of change.

`headwater.events.apply` says what a table is after a list of them.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from headwater.events.base import Model, StringMap
from headwater.events.marks import Identity, OptionName
from headwater.events.names import DatasetId, Name, TableName
from headwater.events.scalars import FieldPath, IdentityString, TruncatableText
from headwater.events.tables import Constraint, SortField, Transform, TypeJson


class ColumnPosition(Model):
    """Where a column goes among its siblings: behind `after`, or first where there is none."""

    after: IdentityString | None = None


class AddColumn(Model):
    change: Literal["AddColumn"] = "AddColumn"
    path: FieldPath
    type: TypeJson
    nullable: bool = True
    comment: TruncatableText | None = None
    default: TruncatableText | None = None
    generated: TruncatableText | None = None
    metadata: str | None = None
    position: ColumnPosition | None = None


class DropColumn(Model):
    change: Literal["DropColumn"] = "DropColumn"
    path: FieldPath
    if_exists: bool = False


class RenameColumn(Model):
    change: Literal["RenameColumn"] = "RenameColumn"
    path: FieldPath
    new_name: Name


class RetypeColumn(Model):
    change: Literal["RetypeColumn"] = "RetypeColumn"
    path: FieldPath
    type: TypeJson


class RecommentColumn(Model):
    change: Literal["RecommentColumn"] = "RecommentColumn"
    path: FieldPath
    comment: TruncatableText | None = None


class MoveColumn(Model):
    change: Literal["MoveColumn"] = "MoveColumn"
    path: FieldPath
    position: ColumnPosition


class ChangeNullability(Model):
    change: Literal["ChangeNullability"] = "ChangeNullability"
    path: FieldPath
    nullable: bool


class ChangeDefault(Model):
    """No default means that it was dropped."""

    change: Literal["ChangeDefault"] = "ChangeDefault"
    path: FieldPath
    default: TruncatableText | None = None


class SetProperty(Model):
    change: Literal["SetProperty"] = "SetProperty"
    key: Annotated[str, OptionName()]
    value: str


class RemoveProperty(Model):
    change: Literal["RemoveProperty"] = "RemoveProperty"
    key: Annotated[str, OptionName()]


class SetComment(Model):
    """The comment of the table itself; none means that it was dropped."""

    change: Literal["SetComment"] = "SetComment"
    comment: TruncatableText | None = None


class SetLocation(Model):
    """`dataset` is what the table is from now on."""

    change: Literal["SetLocation"] = "SetLocation"
    location: IdentityString
    dataset: DatasetId | None = None


class RenameTable(Model):
    """`dataset` is the new identity where the rename moved the data, as it does for tables kept by path."""

    change: Literal["RenameTable"] = "RenameTable"
    table: TableName
    dataset: DatasetId | None = None


class AddPartition(Model):
    change: Literal["AddPartition"] = "AddPartition"
    partition: Annotated[StringMap, Identity()]
    location: IdentityString | None = None


class DropPartition(Model):
    change: Literal["DropPartition"] = "DropPartition"
    partition: Annotated[StringMap, Identity()]


class RenamePartition(Model):
    change: Literal["RenamePartition"] = "RenamePartition"
    partition: Annotated[StringMap, Identity()]
    new_partition: Annotated[StringMap, Identity()]


class SetPartitionLocation(Model):
    change: Literal["SetPartitionLocation"] = "SetPartitionLocation"
    partition: Annotated[StringMap, Identity()]
    location: IdentityString


class AddPartitionField(Model):
    change: Literal["AddPartitionField"] = "AddPartitionField"
    transform: Transform


class DropPartitionField(Model):
    change: Literal["DropPartitionField"] = "DropPartitionField"
    transform: Transform


class ReplacePartitionField(Model):
    change: Literal["ReplacePartitionField"] = "ReplacePartitionField"
    transform: Transform
    new_transform: Transform


class SetOrdering(Model):
    change: Literal["SetOrdering"] = "SetOrdering"
    ordering: tuple[SortField, ...] = ()


class SetClustering(Model):
    change: Literal["SetClustering"] = "SetClustering"
    columns: tuple[FieldPath, ...] = ()


class SetPrimaryKey(Model):
    change: Literal["SetPrimaryKey"] = "SetPrimaryKey"
    columns: tuple[FieldPath, ...] = ()


class AddConstraint(Model):
    change: Literal["AddConstraint"] = "AddConstraint"
    constraint: Constraint


class DropConstraint(Model):
    change: Literal["DropConstraint"] = "DropConstraint"
    name: Name


class OtherChange(Model):
    """Something was changed that has no word here: a file format, a feature, an owner. A change that only a newer
    version has a word for is read as this."""

    change: Literal["OtherChange"] = "OtherChange"
    what: str = ""


TableChange: TypeAlias = Annotated[
    AddColumn
    | DropColumn
    | RenameColumn
    | RetypeColumn
    | RecommentColumn
    | MoveColumn
    | ChangeNullability
    | ChangeDefault
    | SetProperty
    | RemoveProperty
    | SetComment
    | SetLocation
    | RenameTable
    | AddPartition
    | DropPartition
    | RenamePartition
    | SetPartitionLocation
    | AddPartitionField
    | DropPartitionField
    | ReplacePartitionField
    | SetOrdering
    | SetClustering
    | SetPrimaryKey
    | AddConstraint
    | DropConstraint
    | OtherChange,
    Field(discriminator="change"),
]
