"""All kinds of rows. Names of datasets, jobs and catalogs stand in full once; elsewhere a dataset is its hash."""

from __future__ import annotations

from typing import Final

from headwater.lineage.rows.kinds import Group, Keep, Kind
from headwater.lineage.rows.values import binaries, longs, texts, truths

_JOB: Final = texts("job_namespace job")
_PARENT: Final = texts("parent_namespace parent_job")
_NAME: Final = texts("catalog database_name table_name")
_EVENT: Final = (*binaries("producer"), *longs("sequence"))

# What catalogs hold.

CATALOG = Kind("catalogs", texts("type location"), mortal=False, lasting=True)
"""By its type and what it points at: two names for one warehouse are one catalog."""

CATALOG_NAME = Kind("catalog_names", (*texts("name"), *binaries("catalog_id")))
"""What a catalog was called, and when."""

CATALOG_OPTION = Kind("declared_options", (*binaries("catalog_id"), *texts("catalog name value")))
"""Each value that was declared: the one declared first holds, which is decided when reading."""

DATASET = Kind("datasets", texts("namespace name"), mortal=False, lasting=True)

LIFE = Kind("lives", (*binaries("dataset"), *texts("life")), groups=(Group("stored", texts("format")),))
"""A table that was dropped and made again is another life of its dataset."""

ALIAS = Kind("aliases", (*binaries("dataset"), *_NAME))
"""A name under which a dataset was seen, with the time in which it was."""

LINK = Kind("links", (*binaries("old new"), *texts("reason")))
"""Two identities of one dataset: a rename moved its data, or they were found to be one."""

MODIFICATION = Kind(
    "modifications",
    _EVENT,
    fixed=(
        *texts("kind effect cause"),
        *longs("time"),
        *binaries("dataset catalog_id"),
        *texts("life"),
        *_NAME,
        *texts("branch"),
        *longs("schema_id produced parent_snapshot"),
        *texts("detail"),
    ),
    mortal=False,
)
"""All that was done to databases, tables, views, tags and branches: the history of schemas."""

BRANCH = Kind(
    "branches",
    (*binaries("dataset"), *texts("life branch")),
    groups=(Group("origin", (*texts("from_tag from_branch"), *longs("from_snapshot"))),),
)
TAG = Kind("tags", (*binaries("dataset"), *texts("life tag")), groups=(Group("place", longs("snapshot")),))

# Jobs and runs.

JOB = Kind("jobs", _JOB, groups=(Group("about", (*texts("job_type"), *_PARENT)),))

RUN = Kind(
    "runs",
    binaries("run"),
    groups=(
        Group(
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
        Group("status", (*texts("status"), *truths("inferred"), *longs("at exit_code signal"), *texts("error policy"))),
    ),
)
RUN_SETTING = Kind(
    "run_settings", (*binaries("run"), *texts("section name")), groups=(Group("content", texts("value")),)
)
RUN_START = Kind(
    "run_starts",
    (*binaries("run dataset"), *texts("life branch"), *_NAME),
    groups=(Group("place", (*longs("snapshot"), *texts("version reason"))),),
)
"""Where a run began to read a source: `job_startup`."""

SHAPE = Kind(
    "shapes",
    binaries("fingerprint variant"),
    groups=(Group("first", (*_JOB, *texts("query")), Keep.OLDEST),),
    mortal=False,
)
"""Two events of one fingerprint may differ in what it leaves out: of several variants the one told first is read."""

SHAPE_SIDE = Kind(
    "shape_sides",
    (*binaries("fingerprint variant"), *longs("part"), *texts("side"), *longs("position")),
    fixed=(*binaries("dataset"), *_NAME, *texts("format branch opaque detail")),
    mortal=False,
    lasting=True,
)
"""An input or an output of a shape, with its columns, keys, watermarks and options."""

SHAPE_COLUMN = Kind(
    "shape_columns",
    (
        *binaries("fingerprint variant"),
        *longs("output input"),
        *texts("source target derivation expression"),
    ),
    mortal=False,
    lasting=True,
)
"""An edge between columns. Paths are JSON lists."""

TABLE_LINEAGE = Kind(
    "table_lineage",
    (*texts("side"), *_JOB, *_PARENT, *binaries("run dataset"), *_NAME),
)
"""A job read or wrote a table, in a run."""

TABLE_EDGE = Kind(
    "table_edges",
    (
        *binaries("target source fingerprint"),
        *_JOB,
        *_PARENT,
        *texts("target_name source_name opaque certainty"),
    ),
)
"""A job's commits made a table from another. Edges of commits are many, and go with the data when it expires; these are
few, and stay. A name stands only where there is no dataset; what is opaque has neither."""

VIEW_EDGE = Kind("view_edges", (*binaries("view source"), *texts("source_name")), mortal=False, lasting=True)
"""A view was once defined on a table: which definition holds is in `modifications`."""

# What each barrier read and made. The barrier grows with time, so these can be kept apart by it.

COMMIT = Kind(
    "commits",
    (*_JOB, *binaries("incarnation"), *longs("barrier")),
    groups=(
        Group(
            "facts",
            (
                *_PARENT,
                *binaries("run fingerprint"),
                *longs("batch_id statement at"),
                *texts("application user_name operation"),
            ),
        ),
    ),
    partition="barrier",
)

READ = Kind(
    "reads",
    (
        *longs("barrier"),
        *binaries("commit_id dataset"),
        *_NAME,
        *texts("life branch mode"),
        *longs("snapshot"),
        *texts("version"),
        *longs("since_snapshot"),
        *texts("since_version opaque"),
    ),
    groups=(Group("facts", (*texts("format tag candidates"), *truths("main"), *longs("row_count byte_count"))),),
    partition="barrier",
)
WRITE = Kind(
    "writes",
    (
        *longs("barrier"),
        *binaries("commit_id dataset"),
        *_NAME,
        *texts("life branch"),
        *longs("snapshot"),
        *texts("version opaque"),
    ),
    groups=(
        Group(
            "facts",
            (
                *longs("parent_snapshot schema_id"),
                *texts("commit_kind replaced made_from format candidates"),
                *truths("main"),
                *longs("row_count byte_count"),
            ),
        ),
    ),
    partition="barrier",
)
EDGE = Kind("edges", (*longs("barrier"), *binaries("write_id read_id")), partition="barrier")
"""Which reads a write was made from, where those are neither all of its commit's nor unknown."""

FAILURE = Kind(
    "failed_statements",
    _EVENT,
    fixed=(
        *_JOB,
        *_PARENT,
        *binaries("run incarnation"),
        *longs("time statement batch_id"),
        *texts("error inputs outputs query"),
    ),
    mortal=False,
)

# What may be missing, and what was taken away.

GAP = Kind(
    "gaps",
    _EVENT,
    fixed=(*_JOB, *binaries("run dataset"), *longs("time"), *texts("reason detail"), *texts("bounds")),
    mortal=False,
)
PRODUCER = Kind(
    "producers",
    binaries("producer"),
    groups=(
        Group(
            "beat",
            (*texts("application"), *_JOB, *binaries("run"), *longs("sequence beat_seconds"), *texts("dropped")),
        ),
        Group("closing", (*longs("closed_at"), *truths("complete"))),
    ),
)
RECEIVED = Kind("received", (*binaries("producer"), *texts("family"), *longs("block")), bits=True)
"""Which of 63 numbers of a producer's family arrived, and from when to when they are: a hole has a time by that."""

PART = Kind(
    "parts",
    (*binaries("producer"), *longs("first_sequence number")),
    fixed=(*longs("of_parts"), *texts("kind")),
)
"""What arrived of an event that was cut."""

TOMBSTONE = Kind(
    "tombstones",
    (
        *texts("scope"),
        *_JOB,
        *truths("steps"),
        *binaries("run dataset"),
        *texts("life"),
        *longs("up_to_snapshot"),
        *binaries("catalog_id"),
    ),
)
"""A set of rows was deleted: those it names, up to `deleted`. Facts that come late are covered as well."""

KINDS: Final = (
    CATALOG,
    CATALOG_NAME,
    CATALOG_OPTION,
    DATASET,
    LIFE,
    ALIAS,
    LINK,
    MODIFICATION,
    BRANCH,
    TAG,
    JOB,
    RUN,
    RUN_SETTING,
    RUN_START,
    SHAPE,
    SHAPE_SIDE,
    SHAPE_COLUMN,
    TABLE_LINEAGE,
    TABLE_EDGE,
    VIEW_EDGE,
    COMMIT,
    READ,
    WRITE,
    EDGE,
    FAILURE,
    GAP,
    PRODUCER,
    RECEIVED,
    PART,
    TOMBSTONE,
)
