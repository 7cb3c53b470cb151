"""All kinds of rows. Full names of datasets, jobs and catalogs stand in one table each; other tables refer to their
hashes.
"""

from __future__ import annotations

from typing import Final

from headwater.lineage.rows.model import ColumnGroup, Precedence, RowKind
from headwater.lineage.rows.values import RowColumn, binaries, booleans, longs, texts

_JOB: Final = texts("job_namespace job")
_PARENT: Final = texts("parent_namespace parent_job")
_NAME: Final = texts("catalog database_name table_name")
_EVENT: Final = (*binaries("producer"), *longs("sequence"))


def _once(*columns: RowColumn) -> ColumnGroup:
    """The columns of what is reported once. An event that is on the bus twice has two append times, and so two times
    where its clock is ahead: the earlier one counts."""
    return ColumnGroup("event", columns, Precedence.OLDEST)


# What catalogs hold.

CATALOG = RowKind("catalogs", texts("type location"), has_times=False, is_immutable=True)
"""Catalogs, identified by type and location: two names for one warehouse are one catalog."""

CATALOG_NAME = RowKind("catalog_names", (*texts("name"), *binaries("catalog_id")))
"""The names that a catalog has had, and when."""

CATALOG_OPTION = RowKind("declared_options", (*binaries("catalog_id"), *texts("catalog name value")))
"""Each value that was declared for an option of a catalog. Queries use the value that was declared first."""

DATASET = RowKind("datasets", texts("namespace name"), has_times=False, is_immutable=True)

GENERATION = RowKind(
    "generations",
    (*binaries("dataset"), *texts("generation")),
    groups=(ColumnGroup("stored", texts("format")),),
    has_deletions=True,
)
"""A table that was dropped and made again is another generation of its dataset."""

ALIAS = RowKind("aliases", (*binaries("dataset"), *_NAME), has_deletions=True)
"""The table names under which a dataset was seen, and when."""

DATASET_LINK = RowKind("dataset_links", (*binaries("old new"), *texts("reason")))
"""Two identities of one dataset: a rename moved its data, or somebody declared them to be the same."""

MODIFICATION = RowKind(
    "modifications",
    _EVENT,
    groups=(
        _once(
            *texts("kind effect cause"),
            *longs("time"),
            *binaries("dataset catalog_id"),
            *texts("generation"),
            *_NAME,
            *texts("branch"),
            *longs("schema_id produced parent_snapshot"),
            *texts("detail"),
        ),
    ),
    has_times=False,
)
"""All changes of databases, tables, views, tags and branches: the history of schemas."""

BRANCH = RowKind(
    "branches",
    (*binaries("dataset"), *texts("generation branch")),
    groups=(ColumnGroup("origin", (*texts("from_tag from_branch"), *longs("from_snapshot"))),),
    has_deletions=True,
)
TAG = RowKind(
    "tags",
    (*binaries("dataset"), *texts("generation tag")),
    groups=(ColumnGroup("place", longs("snapshot")),),
    has_deletions=True,
)

# Jobs and runs.

JOB = RowKind("jobs", _JOB, groups=(ColumnGroup("about", (*texts("job_type"), *_PARENT)),))

RUN = RowKind(
    "runs",
    binaries("run"),
    groups=(
        ColumnGroup(
            "start",
            (
                *_JOB,
                *_PARENT,
                *texts("application scope job_type user_name code_version headwater_version"),
                *binaries("parent_run"),
                *longs("started_at"),
                *texts("spark stream outer_run"),
            ),
        ),
        ColumnGroup(
            "status",
            (*texts("status"), *booleans("inferred"), *longs("status_at exit_code signal"), *texts("error on_job_end")),
        ),
    ),
)
RUN_START = RowKind(
    "run_starts",
    (*binaries("run dataset"), *texts("generation branch"), *_NAME),
    groups=(ColumnGroup("place", (*longs("snapshot"), *texts("version reason"))),),
)
"""Where a run began to read a source. PIP-5's view `job_startup` shows it."""

JOB_LINEAGE = RowKind(
    "job_lineage",
    binaries("fingerprint variant"),
    groups=(ColumnGroup("first", (*_JOB, *texts("query"), *booleans("columns_omitted")), Precedence.OLDEST),),
    has_times=False,
)
"""Which tables and columns a statement reads and writes, by fingerprint. Two events of one fingerprint can differ in
details that the fingerprint leaves out; queries use the variant that arrived first."""

JOB_LINEAGE_TABLE = RowKind(
    "job_lineage_tables",
    (*binaries("fingerprint variant"), *texts("side"), *longs("position")),
    maxima=(*binaries("dataset"), *_NAME, *texts("format branch opaque detail")),
    has_times=False,
    is_immutable=True,
)
"""An input or an output of a statement, with its columns, keys, watermarks and options."""

JOB_LINEAGE_COLUMN = RowKind(
    "job_lineage_columns",
    (
        *binaries("fingerprint variant"),
        *longs("output input"),
        *texts("source target derivation expression"),
    ),
    has_times=False,
    is_immutable=True,
)
"""An output column that is computed from an input column. Paths of nested columns are JSON lists."""

TABLE_LINEAGE = RowKind(
    "table_lineage",
    (*texts("side"), *_JOB, *_PARENT, *binaries("run dataset"), *_NAME),
)
"""A job read or wrote a table in a run."""

TABLE_EDGE = RowKind(
    "table_edges",
    (
        *binaries("target source fingerprint"),
        *_JOB,
        *_PARENT,
        *texts("target_name source_name opaque certainty"),
    ),
)
"""Commits of a job wrote one table from another. Edges of single commits expire with the data; these are few and stay.
The name columns are set only if there is no dataset; opaque sources have neither."""

VIEW_EDGE = RowKind("view_edges", (*binaries("view source"), *texts("source_name")), has_times=False, is_immutable=True)
"""A view has been defined on a table at some time. `modifications` has the current definition."""

# What each barrier read and made. The barrier grows with time, so these can be kept apart by it.

COMMIT = RowKind(
    "commits",
    (*longs("barrier"), *binaries("incarnation"), *_JOB),
    groups=(
        ColumnGroup(
            "facts",
            (
                *_PARENT,
                *binaries("run fingerprint"),
                *longs("batch_id statement committed_at started_at ended_at"),
                *texts("application user_name operation evidence"),
            ),
        ),
    ),
    partition="barrier",
)

PLACE = RowKind(
    "places",
    (
        *binaries("dataset"),
        *_NAME,
        *texts("generation branch opaque format"),
        *booleans("main"),
        *texts("mode tag commit_kind replaced made_from"),
        *longs("schema_id"),
    ),
    has_times=False,
    is_immutable=True,
)
"""What commits read or wrote, and how: all that is the same in each commit of a statement. `mode` and `tag` are of
reads, what follows them is of writes."""

READ = RowKind(
    "reads",
    (
        *longs("barrier"),
        *binaries("commit_id place_id"),
        *longs("snapshot since_snapshot"),
        *texts("version since_version candidates"),
    ),
    maxima=longs("row_count byte_count"),
    partition="barrier",
    owner="commit_id",
)
WRITE = RowKind(
    "writes",
    (*longs("barrier"), *binaries("commit_id place_id"), *longs("snapshot"), *texts("version candidates")),
    maxima=longs("parent_snapshot row_count byte_count file_count snapshot_time"),
    partition="barrier",
    owner="commit_id",
)
COMMIT_EDGE = RowKind(
    "commit_edges",
    (*longs("barrier"), *binaries("write_id read_id")),
    has_times=False,
    partition="barrier",
    owner="write_id",
)
"""Which reads of its commit a write was made from, unless it is all of them or unknown."""

FAILED_STATEMENT = RowKind(
    "failed_statements",
    _EVENT,
    groups=(
        _once(
            *_JOB,
            *_PARENT,
            *binaries("run incarnation"),
            *longs("time statement batch_id"),
            *texts("error inputs outputs query"),
        ),
    ),
    has_times=False,
)

# What may be missing, and what was taken away.

GAP = RowKind(
    "gaps",
    _EVENT,
    groups=(_once(*_JOB, *binaries("run dataset"), *longs("time"), *texts("reason detail"), *texts("bounds")),),
    has_times=False,
)
PRODUCER = RowKind(
    "producers",
    binaries("producer"),
    groups=(
        ColumnGroup(
            "heartbeat",
            (*texts("application"), *_JOB, *binaries("run"), *longs("sequence heartbeat_seconds"), *texts("dropped")),
        ),
        ColumnGroup("closing", (*longs("closed_at"), *booleans("complete"))),
    ),
)
ARRIVAL = RowKind("arrivals", (*binaries("producer"), *texts("family"), *longs("block")), has_bits=True)
"""Which 63 numbers of a producer's event family have arrived, and the time range of those events."""

TOMBSTONE = RowKind(
    "tombstones",
    (
        *texts("scope"),
        *_JOB,
        *booleans("with_steps"),
        *binaries("run dataset"),
        *texts("generation"),
        *longs("up_to_snapshot"),
        *binaries("catalog_id"),
    ),
    has_deletions=True,
)
"""A deletion of a set of rows up to `deleted`. It covers facts that arrive later, too."""

KINDS: Final = (
    CATALOG,
    CATALOG_NAME,
    CATALOG_OPTION,
    DATASET,
    GENERATION,
    ALIAS,
    DATASET_LINK,
    MODIFICATION,
    BRANCH,
    TAG,
    JOB,
    RUN,
    RUN_START,
    JOB_LINEAGE,
    JOB_LINEAGE_TABLE,
    JOB_LINEAGE_COLUMN,
    TABLE_LINEAGE,
    TABLE_EDGE,
    VIEW_EDGE,
    PLACE,
    COMMIT,
    READ,
    WRITE,
    COMMIT_EDGE,
    FAILED_STATEMENT,
    GAP,
    PRODUCER,
    ARRIVAL,
    TOMBSTONE,
)
KIND_OF: Final = {kind.name: kind for kind in KINDS}

EVENT_FACTS: Final = frozenset({MODIFICATION, COMMIT, READ, WRITE, COMMIT_EDGE, FAILED_STATEMENT, GAP})
"""What one event alone reports. Nearly every such row is new, so a database inserts it first and merges it only if it
turns out to be there."""
