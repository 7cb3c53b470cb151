"""Catalog modifications: what DDL, procedures and schema-changing writes did to databases, tables, views, branches.

Only what happened is told; where that can't be known, `effect` is UNKNOWN and the store doesn't apply the event.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from headwater.events.base import Model, Texts
from headwater.events.changes import TableChange
from headwater.events.envelope import Event, Family
from headwater.events.marks import Spread
from headwater.events.names import CatalogId, DatasetId, Life, Name, TableName
from headwater.events.scalars import Format, Long, PlanSql, Word
from headwater.events.tables import Database, Table, View


class CatalogContext(Model):
    """The catalog that was modified."""

    name: Name
    class_name: str
    """The class of the catalog's implementation."""
    factory: str | None = None
    """The identifier of the catalog's factory: paimon, iceberg, delta, hive, jdbc …"""
    configuration: Texts = Texts()
    id: CatalogId | None = None
    """Absent where the configuration doesn't tell what the catalog points at."""


class Effect(Word):
    UNKNOWN = "UNKNOWN"
    APPLIED = "APPLIED"


class Cause(Word):
    UNKNOWN = "UNKNOWN"
    STATEMENT = "STATEMENT"
    PROCEDURE = "PROCEDURE"
    WRITE = "WRITE"


class DatabaseName(Model):
    """Nested namespaces as in `TableName.database`."""

    catalog: str
    database: Name


class CatalogModification(Event):
    """What all catalog modifications tell."""

    family: ClassVar[Family] = Family.CATALOG

    context: CatalogContext
    effect: Effect = Effect.APPLIED
    cause: Cause = Cause.STATEMENT
    sql: PlanSql | None = None
    """The statement, redacted; told only where capture.sql is true."""


class DatabaseModification(CatalogModification):
    identifier: DatabaseName


class CreateDatabase(DatabaseModification):
    kind: Literal["CreateDatabase"] = "CreateDatabase"
    schema_version: Literal[1] = 1
    database: Database
    ignore_if_exists: bool = False


class AlterDatabase(DatabaseModification):
    kind: Literal["AlterDatabase"] = "AlterDatabase"
    schema_version: Literal[1] = 1
    database: Database | None = None
    """As it was before, where that is known."""
    new_database: Database
    ignore_if_not_exists: bool = False


class DropDatabase(DatabaseModification):
    kind: Literal["DropDatabase"] = "DropDatabase"
    schema_version: Literal[1] = 1
    database: Database | None = None
    ignore_if_not_exists: bool = False
    cascade: bool = False


class TableModification(CatalogModification):
    """What is told of the table (or view) that was modified. `dataset` is absent where its place isn't known."""

    identifier: TableName
    dataset: DatasetId | None = None
    life: Life | None = None
    format: Format = Format.UNKNOWN
    on_branch: str | None = None
    """The branch that was modified, where it isn't the main line under its default name."""
    schema_id: Long | None = None
    produced: Long | None = None
    """The snapshot or version that the modification itself made, in formats where it makes one (each on Delta). Where
    a Committed tells it, that is where its inputs are: both name the same one."""
    parent: Long | None = None
    """The snapshot or version that `produced` was made on."""


class CreateTable(TableModification):
    kind: Literal["CreateTable"] = "CreateTable"
    schema_version: Literal[1] = 1
    table: Table
    ignore_if_exists: bool = False
    as_select: bool = False
    replaced: bool = False
    """CREATE OR REPLACE, or RTAS, took the place of a table that was there."""
    replaced_life: Life | None = None


class AlterTable(TableModification):
    kind: Literal["AlterTable"] = "AlterTable"
    schema_version: Literal[1] = 1
    changes: Annotated[tuple[TableChange, ...], Spread()] = ()
    table: Table | None = None
    """As it was analysed, before the changes."""
    new_table: Table | None = None
    """The changes applied to `table`; read from the catalog afterwards where the old one isn't known."""
    ignore_if_not_exists: bool = False


class DropTable(TableModification):
    kind: Literal["DropTable"] = "DropTable"
    schema_version: Literal[1] = 1
    table: Table | None = None
    ignore_if_not_exists: bool = False
    purge: bool = False


class CreateView(TableModification):
    kind: Literal["CreateView"] = "CreateView"
    schema_version: Literal[1] = 1
    view: View
    ignore_if_exists: bool = False
    replaced: bool = False


class AlterView(TableModification):
    kind: Literal["AlterView"] = "AlterView"
    schema_version: Literal[1] = 1
    view: View | None = None
    new_view: View | None = None
    renamed_to: TableName | None = None
    ignore_if_not_exists: bool = False


class DropView(TableModification):
    kind: Literal["DropView"] = "DropView"
    schema_version: Literal[1] = 1
    view: View | None = None
    ignore_if_not_exists: bool = False


class Truncate(TableModification):
    """All rows, or all rows of some partitions, were removed. The snapshot that this made is told by a Committed."""

    kind: Literal["Truncate"] = "Truncate"
    schema_version: Literal[1] = 1
    partitions: Annotated[tuple[Texts, ...], Spread()] = ()


class CreateTag(TableModification):
    kind: Literal["CreateTag"] = "CreateTag"
    schema_version: Literal[1] = 1
    tag: Name
    snapshot: Long | None = None
    ignore_if_exists: bool = False
    replaced: bool = False
    retention: str | None = None


class DropTag(TableModification):
    kind: Literal["DropTag"] = "DropTag"
    schema_version: Literal[1] = 1
    tag: Name
    ignore_if_not_exists: bool = False


class CreateBranch(TableModification):
    kind: Literal["CreateBranch"] = "CreateBranch"
    schema_version: Literal[1] = 1
    branch: Name
    tag: str | None = None
    """The tag it was made from, where it was made from one."""
    from_branch: str | None = None
    snapshot: Long | None = None
    ignore_if_exists: bool = False
    replaced: bool = False
    retention: str | None = None


class DropBranch(TableModification):
    kind: Literal["DropBranch"] = "DropBranch"
    schema_version: Literal[1] = 1
    branch: Name
    ignore_if_not_exists: bool = False


class BranchMerged(TableModification):
    """What is on `branch` was put on `into`, in place of what had come since it branched off; `branch` goes on."""

    kind: Literal["BranchMerged"] = "BranchMerged"
    schema_version: Literal[1] = 1
    branch: Name
    into: str | None = None
    """The branch merged into; none is the main line under its default name."""
    tag: str | None = None
    """The tag that `branch` was made from."""
    previous_snapshot: Long | None = None
    snapshot: Long | None = None


class MainReplaced(TableModification):
    """`branch` took over the role of main; the line that had it before is gone."""

    kind: Literal["MainReplaced"] = "MainReplaced"
    schema_version: Literal[1] = 1
    branch: Name
    previous: str | None = None
    """The branch that was main before; none is the main line under its default name."""
    tag: str | None = None
    previous_snapshot: Long | None = None
    snapshot: Long | None = None
