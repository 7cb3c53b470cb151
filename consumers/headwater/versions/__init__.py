"""Data versions: what a snapshot contains of the tables upstream of it, and which snapshots belong together.

model           versions, and what is contained of each table
contents        reads from the store what a snapshot contains, and what isn't known of that
source_states   adds what commits read to what a table contains
commit_reads    what a commit read: which version each reference means
commit_lines    walks from commits to those that they were made on
consistency     compares what several snapshots contain
alignment       finds the newest snapshots that belong together
differences     which commits some of the tables lack
cuts            a snapshot of each table of a group, and data versions
fixed_versions  what `align` has to go with: versions, a cut, a data version, a time
questions       `contained`, `check` and `align`, each of which asks one `version_question`
reading         a block of statements that read versions which belong together
needed_snapshots  what corrections and aligned jobs still need of a table
aligned         jobs that read the same snapshots, one data version after another

It stands above `headwater.lineage` and `headwater.listeners`. `reading` and `aligned` alone use Spark, and import
it when they run.
"""

from headwater.versions.aligned import AlignedBatch, AlignedQuery, aligned_query, start_options
from headwater.versions.alignment import NoAlignmentError
from headwater.versions.answers import (
    AlignedTable,
    AlignmentAnswer,
    ConsistencyAnswer,
    ContainedAnswer,
    ContainedVersion,
    SharedAncestor,
    TableAt,
)
from headwater.versions.questions import align, check, contained
from headwater.versions.reading import reading

__all__ = [
    "AlignedBatch",
    "AlignedQuery",
    "AlignedTable",
    "AlignmentAnswer",
    "ConsistencyAnswer",
    "ContainedAnswer",
    "ContainedVersion",
    "NoAlignmentError",
    "SharedAncestor",
    "TableAt",
    "align",
    "aligned_query",
    "check",
    "contained",
    "reading",
    "start_options",
]
