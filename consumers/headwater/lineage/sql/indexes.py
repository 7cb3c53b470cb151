"""The indexes of the store: the columns that queries filter and join by.

A text can be longer than a B-tree entry, and no row may be refused because of an index. So texts have hash indexes on
PostgreSQL and prefix indexes on MySQL. All other indexed columns are hashes and numbers.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import Index

from headwater.lineage.rows import ColumnType, RowKind
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.tables import table_of

_PREFIX: Final = 128
"""How many characters of a text MySQL indexes."""

_INDEXES: Final[tuple[tuple[RowKind, str], ...]] = (
    # names and identities
    (t.CATALOG_NAME, "catalog_id"),
    (t.DATASET, "name"),
    (t.GENERATION, "dataset"),
    (t.ALIAS, "dataset"),
    (t.ALIAS, "table_name"),
    (t.DATASET_LINK, "old"),
    (t.DATASET_LINK, "new"),
    (t.MODIFICATION, "dataset time"),
    (t.MODIFICATION, "dataset produced"),
    (t.BRANCH, "dataset"),
    (t.TAG, "dataset"),
    # jobs, runs and the shapes of writes
    (t.RUN, "run"),
    (t.RUN, "job"),
    (t.RUN, "parent_run"),
    (t.RUN, "parent_job"),
    (t.RUN, "first"),
    (t.RUN_START, "run"),
    (t.RUN_START, "dataset"),
    (t.JOB_LINEAGE, "fingerprint"),
    (t.JOB_LINEAGE_TABLE, "fingerprint"),
    (t.JOB_LINEAGE_TABLE, "dataset"),
    (t.JOB_LINEAGE_COLUMN, "fingerprint"),
    (t.TABLE_LINEAGE, "dataset last"),
    (t.TABLE_LINEAGE, "run"),
    (t.TABLE_LINEAGE, "job"),
    (t.TABLE_LINEAGE, "parent_job"),
    (t.TABLE_EDGE, "target"),
    (t.TABLE_EDGE, "source"),
    (t.VIEW_EDGE, "view"),
    (t.VIEW_EDGE, "source"),
    # data lineage
    (t.COMMIT, "run barrier"),
    (t.PLACE, "dataset"),
    (t.READ, "place_id snapshot since_snapshot"),
    (t.WRITE, "place_id snapshot"),
    (t.WRITE, "place_id parent_snapshot"),
    (t.WRITE, "place_id first"),
    (t.FAILED_STATEMENT, "run"),
    (t.FAILED_STATEMENT, "time"),
    # what may be missing, and what was taken away
    (t.GAP, "dataset"),
    (t.GAP, "run"),
    (t.GAP, "job"),
    (t.PRODUCER, "producer"),
    (t.PRODUCER, "application"),
    (t.PRODUCER, "closed_at last"),
    (t.ARRIVAL, "producer block"),
    (t.ARRIVAL, "last"),
    (t.GAP, "time"),
    (t.TOMBSTONE, "run dataset"),
    (t.TOMBSTONE, "job"),
    (t.TOMBSTONE, "dataset"),
)
"""A kind of row, and the columns of an index in their order. An index with a text has no other column."""


def _make_index(kind: RowKind, names: str) -> Index:
    table = table_of(kind)
    columns = [table.c[name] for name in names.split()]
    of_groups = (field for group in kind.groups for field in group.columns)
    texts = {field.name for field in (*kind.key, *kind.maxima, *of_groups) if field.type is ColumnType.TEXT}
    options: dict[str, object] = {}
    for name in names.split():
        if name in texts:
            options = {
                "postgresql_using": "hash",
                "mysql_length": {name: _PREFIX},
                "mariadb_length": {name: _PREFIX},
            }
    return Index(f"ix_{kind.name}_{names.replace(' ', '_')}", *columns, **options)  # type: ignore[arg-type]


INDEXES: Final = tuple(_make_index(kind, names) for kind, names in _INDEXES)
