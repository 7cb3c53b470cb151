"""The indexes: what the questions look for, and what joins them.

A text can be longer than a B-tree takes, and nothing that is accepted may be refused for an index: on PostgreSQL texts
have hash indexes, on MySQL their beginning is indexed. Everything else is hashes and numbers.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import Index

from headwater.lineage.rows import Kind, Type
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.tables import table_of

_PREFIX: Final = 128
"""Characters of a text that MySQL indexes."""

_INDEXES: Final[tuple[tuple[Kind, str], ...]] = (
    # names and identities
    (t.CATALOG_NAME, "catalog_id"),
    (t.LIFE, "dataset"),
    (t.ALIAS, "dataset"),
    (t.ALIAS, "table_name"),
    (t.LINK, "old"),
    (t.LINK, "new"),
    (t.MODIFICATION, "dataset time"),
    (t.MODIFICATION, "dataset produced"),
    (t.BRANCH, "dataset"),
    (t.TAG, "dataset"),
    # jobs, runs and the shapes of writes
    (t.RUN, "job"),
    (t.RUN, "parent_run"),
    (t.RUN, "parent_job"),
    (t.RUN, "first"),
    (t.RUN_SETTING, "run"),
    (t.RUN_START, "run"),
    (t.RUN_START, "dataset"),
    (t.SHAPE, "fingerprint"),
    (t.SHAPE_SIDE, "fingerprint"),
    (t.SHAPE_SIDE, "dataset"),
    (t.SHAPE_COLUMN, "fingerprint"),
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
    (t.READ, "commit_id"),
    (t.READ, "dataset snapshot since_snapshot"),
    (t.WRITE, "commit_id"),
    (t.WRITE, "dataset snapshot"),
    (t.WRITE, "dataset parent_snapshot"),
    (t.WRITE, "dataset first"),
    (t.EDGE, "write_id"),
    (t.EDGE, "read_id"),
    (t.FAILURE, "run"),
    # what may be missing, and what was taken away
    (t.GAP, "dataset"),
    (t.GAP, "run"),
    (t.PART, "producer first_sequence"),
    (t.PRODUCER, "closed_at last"),
    (t.RECEIVED, "producer block"),
    (t.RECEIVED, "last"),
    (t.GAP, "time"),
    (t.TOMBSTONE, "run dataset"),
    (t.TOMBSTONE, "job"),
    (t.TOMBSTONE, "dataset"),
)
"""A kind of rows, and the columns of an index in their order. One with a text has that alone."""


def _made(kind: Kind, names: str) -> Index:
    table = table_of(kind)
    columns = [table.c[name] for name in names.split()]
    of_groups = (field for group in kind.groups for field in group.columns)
    texts = {field.name for field in (*kind.key, *kind.fixed, *of_groups) if field.type is Type.TEXT}
    options: dict[str, object] = {}
    for name in names.split():
        if name in texts:
            options = {
                "postgresql_using": "hash",
                "mysql_length": {name: _PREFIX},
                "mariadb_length": {name: _PREFIX},
            }
    return Index(f"ix_{kind.name}_{names.replace(' ', '_')}", *columns, **options)  # type: ignore[arg-type]


INDEXES: Final = tuple(_made(kind, names) for kind, names in _INDEXES)
