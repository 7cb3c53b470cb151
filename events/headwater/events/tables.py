"""Descriptions of what a catalog holds: databases, tables, views, and their columns."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import Field

from headwater.events.base import Model, StringMap
from headwater.events.column_lineage import ColumnLineage
from headwater.events.marks import TypeText
from headwater.events.names import DatasetId, Name, TableName
from headwater.events.scalars import EventEnum, FieldPath, IdentityString, SqlString, TruncatableText

TypeJson: TypeAlias = Annotated[str, Field(min_length=1), TypeText()]
"""Spark's type JSON as text: nested fields bring their comments along."""


class Column(Model):
    """A column. `type` is Spark's type JSON as text (nested fields stand in it); see `headwater.events.types`."""

    name: IdentityString
    type: TypeJson
    nullable: bool = True
    comment: TruncatableText | None = None
    default: TruncatableText | None = None
    """The SQL text of the column's default."""
    generated: TruncatableText | None = None
    """The SQL text that the column is computed by."""
    metadata: str | None = None
    """Spark's field metadata as JSON, without what has a field of its own here."""


class Transform(Model):
    """How a partition or order is made from columns: identity(d), bucket(16, id), days(ts).

    A partition field can have a name of its own; a change may tell that name alone, without columns.
    """

    name: Name = "identity"
    columns: tuple[FieldPath, ...] = ()
    arguments: tuple[str, ...] = ()
    field_name: IdentityString | None = None

    @property
    def is_identity(self) -> bool:
        return self.name == "identity"


class SortField(Model):
    """One part of a table's write order."""

    by: Transform
    descending: bool = False
    nulls_first: bool | None = None


class Watermark(Model):
    """How late an event-time column may be."""

    column: FieldPath
    delay: str
    """As Spark writes intervals, or an expression where the catalog keeps one."""


class ConstraintKind(EventEnum):
    OTHER = "OTHER"
    PRIMARY_KEY = "PRIMARY_KEY"
    UNIQUE = "UNIQUE"
    FOREIGN_KEY = "FOREIGN_KEY"
    CHECK = "CHECK"
    NOT_NULL = "NOT_NULL"


class Constraint(Model):
    name: Name
    kind: ConstraintKind
    columns: tuple[FieldPath, ...] = ()
    expression: TruncatableText | None = None
    references: TableName | None = None
    referenced_columns: tuple[FieldPath, ...] = ()
    enforced: bool | None = None


class TableKind(EventEnum):
    UNKNOWN = "UNKNOWN"
    MANAGED = "MANAGED"
    EXTERNAL = "EXTERNAL"


class Database(Model):
    comment: TruncatableText | None = None
    location: IdentityString | None = None
    owner: IdentityString | None = None
    properties: StringMap = StringMap()


class Table(Model):
    """A table as its catalog describes it. Its names and identity stand beside it, in the event.

    >>> Table(columns=(Column(name="id", type='"long"', nullable=False),)).columns[0].name
    'id'
    """

    columns: tuple[Column, ...] = ()
    partitioning: tuple[Transform, ...] = ()
    ordering: tuple[SortField, ...] = ()
    clustering: tuple[FieldPath, ...] = ()
    primary_key: tuple[FieldPath, ...] = ()
    watermarks: tuple[Watermark, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    properties: StringMap = StringMap()
    comment: TruncatableText | None = None
    location: IdentityString | None = None
    provider: IdentityString | None = None
    """As the catalog says it: iceberg, delta, paimon, hudi, parquet, hive …"""
    table_kind: TableKind = TableKind.UNKNOWN
    owner: IdentityString | None = None

    @property
    def partition_keys(self) -> tuple[FieldPath, ...]:
        """The columns that the table is partitioned by, whatever the transform."""
        return tuple(column for transform in self.partitioning for column in transform.columns)


class ViewSource(Model):
    """What a view reads: the dataset as far as it is known, and the name it is read by."""

    dataset: DatasetId | None
    table: TableName | None = None


class View(Model):
    columns: tuple[Column, ...] = ()
    sql: SqlString | None = None
    """Without literals, unless capture.sql is true."""
    sources: tuple[ViewSource, ...] = ()
    lineage: tuple[ColumnLineage, ...] = ()
    """`input` counts in `sources`, `output` is 0: the view."""
    properties: StringMap = StringMap()
    comment: TruncatableText | None = None
    owner: IdentityString | None = None
