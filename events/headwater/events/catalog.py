"""Catalog modifications: what DDL, procedures and schema-changing writes did to databases, tables, views, branches.

Only what happened is reported; where that can't be known, `effect` is UNKNOWN and the store doesn't apply the event.

In the examples `lake` is a CatalogContext and `orders` the TableName lake.sales.orders.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from headwater.events.base import Model, StringMap
from headwater.events.changes import TableChange
from headwater.events.envelope import Event, EventFamily
from headwater.events.marks import Identity
from headwater.events.names import CatalogId, DatasetId, Generation, Name, TableName
from headwater.events.scalars import EventEnum, Format, IdentityString, Long, SqlString
from headwater.events.tables import Database, Table, View


class CatalogContext(Model):
    """The catalog that was modified."""

    name: Name
    class_name: IdentityString
    """The class of the catalog's implementation."""
    factory: IdentityString | None = None
    """The identifier of the catalog's factory: paimon, iceberg, delta, hive, jdbc …"""
    configuration: StringMap = StringMap()
    id: CatalogId | None = None
    """Absent where the configuration doesn't tell what the catalog points at."""


class ModificationEffect(EventEnum):
    UNKNOWN = "UNKNOWN"
    APPLIED = "APPLIED"


class ModificationCause(EventEnum):
    UNKNOWN = "UNKNOWN"
    STATEMENT = "STATEMENT"
    PROCEDURE = "PROCEDURE"
    WRITE = "WRITE"


class DatabaseName(Model):
    """Nested namespaces as in `TableName.database`."""

    catalog: IdentityString
    database: Name


class CatalogModification(Event):
    """What all catalog modifications tell."""

    family: ClassVar[EventFamily] = EventFamily.CATALOG

    context: CatalogContext
    effect: ModificationEffect = ModificationEffect.APPLIED
    cause: ModificationCause = ModificationCause.STATEMENT
    sql: SqlString | None = None
    """The statement, redacted; recorded only where capture.sql is true."""


class DatabaseModification(CatalogModification):
    identifier: DatabaseName


class CreateDatabase(DatabaseModification):
    """A database was created.

    >>> sales = DatabaseName(catalog="lake", database="sales")
    >>> CreateDatabase(context=lake, identifier=sales, database=Database(owner="etl")).database.owner
    'etl'
    """

    kind: Literal["CreateDatabase"] = "CreateDatabase"
    schema_version: Literal[1] = 1
    database: Database
    ignore_if_exists: bool = False


class AlterDatabase(DatabaseModification):
    """A database's comment, location, owner or properties were changed.

    >>> sales = DatabaseName(catalog="lake", database="sales")
    >>> AlterDatabase(context=lake, identifier=sales, new_database=Database(comment="orders")).database is None
    True
    """

    kind: Literal["AlterDatabase"] = "AlterDatabase"
    schema_version: Literal[1] = 1
    database: Database | None = None
    """As it was before, where that is known."""
    new_database: Database
    ignore_if_not_exists: bool = False


class DropDatabase(DatabaseModification):
    """A database was dropped.

    >>> sales = DatabaseName(catalog="lake", database="sales")
    >>> DropDatabase(context=lake, identifier=sales, cascade=True).kind
    'DropDatabase'
    """

    kind: Literal["DropDatabase"] = "DropDatabase"
    schema_version: Literal[1] = 1
    database: Database | None = None
    ignore_if_not_exists: bool = False
    cascade: bool = False


class TableModification(CatalogModification):
    """What is recorded of the table (or view) that was modified. `dataset` is absent where its place isn't known."""

    identifier: TableName
    dataset: DatasetId | None = None
    generation: Generation | None = None
    format: Format = Format.UNKNOWN
    on_branch: IdentityString | None = None
    """The branch that was modified, where it isn't the main line under its default name."""
    schema_id: Long | None = None
    produced: Long | None = None
    """The snapshot or version that the modification itself made, in formats where it makes one (each on Delta). Where
    a Committed tells it, that is where its inputs are: both name the same one."""
    parent: Long | None = None
    """The snapshot or version that `produced` was made on."""


class CreateTable(TableModification):
    """A table was created or replaced.

    >>> event = CreateTable(context=lake, identifier=orders, table=Table(columns=(Column(name="id", type='"long"'),)))
    >>> [column.name for column in event.table.columns]
    ['id']
    """

    kind: Literal["CreateTable"] = "CreateTable"
    schema_version: Literal[1] = 1
    table: Table
    ignore_if_exists: bool = False
    as_select: bool = False
    replaced: bool = False
    """CREATE OR REPLACE, or RTAS, took the place of a table that was there."""
    replaced_generation: Generation | None = None


class AlterTable(TableModification):
    """A table was changed; `changes` say how, in their order.

    >>> AlterTable(context=lake, identifier=orders, changes=(DropColumn(path=("note",)),)).changes[0].change
    'DropColumn'
    """

    kind: Literal["AlterTable"] = "AlterTable"
    schema_version: Literal[1] = 1
    changes: tuple[TableChange, ...] = ()
    table: Table | None = None
    """As it was analysed, before the changes."""
    new_table: Table | None = None
    """The changes applied to `table`; read from the catalog afterwards where the old one isn't known."""
    ignore_if_not_exists: bool = False


class DropTable(TableModification):
    """A table was dropped.

    >>> str(DropTable(context=lake, identifier=orders, purge=True).identifier)
    'lake.sales.orders'
    """

    kind: Literal["DropTable"] = "DropTable"
    schema_version: Literal[1] = 1
    table: Table | None = None
    ignore_if_not_exists: bool = False
    purge: bool = False


class CreateView(TableModification):
    """A view was created or replaced.

    >>> source = ViewSource(dataset=None, table=orders)
    >>> CreateView(context=lake, identifier=orders, view=View(sources=(source,))).replaced
    False
    """

    kind: Literal["CreateView"] = "CreateView"
    schema_version: Literal[1] = 1
    view: View
    ignore_if_exists: bool = False
    replaced: bool = False


class AlterView(TableModification):
    """A view was renamed or defined again.

    >>> to = TableName(catalog="lake", database="sales", table="all_orders")
    >>> str(AlterView(context=lake, identifier=orders, renamed_to=to).renamed_to)
    'lake.sales.all_orders'
    """

    kind: Literal["AlterView"] = "AlterView"
    schema_version: Literal[1] = 1
    view: View | None = None
    new_view: View | None = None
    renamed_to: TableName | None = None
    renamed_dataset: DatasetId | None = None
    """What it is under its new name: a view is its catalog's name for it."""
    ignore_if_not_exists: bool = False


class DropView(TableModification):
    """A view was dropped.

    >>> DropView(context=lake, identifier=orders).kind
    'DropView'
    """

    kind: Literal["DropView"] = "DropView"
    schema_version: Literal[1] = 1
    view: View | None = None
    ignore_if_not_exists: bool = False


class Truncate(TableModification):
    """All rows of a table, or of some of its partitions, were removed.

    A Committed names the snapshot that this made.

    >>> march = StringMap({"month": "2026-03"})
    >>> Truncate(context=lake, identifier=orders, partitions=(march,)).partitions[0]["month"]
    '2026-03'
    """

    kind: Literal["Truncate"] = "Truncate"
    schema_version: Literal[1] = 1
    partitions: Annotated[tuple[StringMap, ...], Identity()] = ()


class CreateTag(TableModification):
    """A tag was created or moved.

    >>> CreateTag(context=lake, identifier=orders, tag="eod", snapshot=7).snapshot
    7
    """

    kind: Literal["CreateTag"] = "CreateTag"
    schema_version: Literal[1] = 1
    tag: Name
    snapshot: Long | None = None
    ignore_if_exists: bool = False
    replaced: bool = False
    retention: str | None = None


class DropTag(TableModification):
    """A tag was dropped.

    >>> DropTag(context=lake, identifier=orders, tag="eod").tag
    'eod'
    """

    kind: Literal["DropTag"] = "DropTag"
    schema_version: Literal[1] = 1
    tag: Name
    ignore_if_not_exists: bool = False


class CreateBranch(TableModification):
    """A branch was created or replaced.

    >>> CreateBranch(context=lake, identifier=orders, branch="audit", snapshot=7).branch
    'audit'
    """

    kind: Literal["CreateBranch"] = "CreateBranch"
    schema_version: Literal[1] = 1
    branch: Name
    tag: IdentityString | None = None
    """The tag it was made from, where it was made from one."""
    from_branch: IdentityString | None = None
    snapshot: Long | None = None
    ignore_if_exists: bool = False
    replaced: bool = False
    retention: str | None = None


class DropBranch(TableModification):
    """A branch was dropped.

    >>> DropBranch(context=lake, identifier=orders, branch="audit").branch
    'audit'
    """

    kind: Literal["DropBranch"] = "DropBranch"
    schema_version: Literal[1] = 1
    branch: Name
    ignore_if_not_exists: bool = False


class BranchMerged(TableModification):
    """`branch` was merged into `into`, in place of the commits made there since it branched off; `branch` stays.

    >>> BranchMerged(context=lake, identifier=orders, branch="audit", previous_snapshot=7, snapshot=9).into is None
    True
    """

    kind: Literal["BranchMerged"] = "BranchMerged"
    schema_version: Literal[1] = 1
    branch: Name
    into: IdentityString | None = None
    """The branch merged into; none is the main line under its default name."""
    tag: IdentityString | None = None
    """The tag that `branch` was made from."""
    previous_snapshot: Long | None = None
    snapshot: Long | None = None


class MainReplaced(TableModification):
    """`branch` became the main branch; the branch that was main before is gone.

    >>> MainReplaced(context=lake, identifier=orders, branch="audit", snapshot=9).branch
    'audit'
    """

    kind: Literal["MainReplaced"] = "MainReplaced"
    schema_version: Literal[1] = 1
    branch: Name
    previous: IdentityString | None = None
    """The branch that was main before; none is the main line under its default name."""
    tag: IdentityString | None = None
    previous_snapshot: Long | None = None
    snapshot: Long | None = None


class CorrectionSwitched(TableModification):
    """The corrected rows of a mirror are the table's, and so are those of all other tables of the correction.

    It is reported for each table once the last one is switched. If that is interrupted, it may come again: a
    correction's name and a table say which it is.

    >>> why = {"wrong_table": orders, "wrong_snapshot": 4}
    >>> fix = {"correction": "c-20260301-orders-4f2a", "mirror": "correction_20260301_orders_4f2a"}
    >>> CorrectionSwitched(context=lake, identifier=orders, **fix, **why, snapshot=9).wrong_snapshot
    4
    """

    kind: Literal["CorrectionSwitched"] = "CorrectionSwitched"
    schema_version: Literal[1] = 1
    correction: Name
    mirror: IdentityString
    """The branch that was the table's mirror."""
    wrong_table: TableName
    """The table whose rows were wrong, so that this one was corrected."""
    wrong_snapshot: Long
    """The first snapshot of `wrong_table` that was wrong."""
    previous_snapshot: Long | None = None
    snapshot: Long | None = None
