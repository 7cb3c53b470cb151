"""Aligned jobs: every job of a group reads the same snapshots of several tables, one data version after another.

claims        decides in the store which snapshots a data version has
proposals     the next cut, from the tables themselves, and what wakes a continuous job
starts        where a job begins
checkpoints   one file for each barrier
formats       what Iceberg, Delta and Paimon tables say of their snapshots
batch         what the user's function gets; writes that happen once
loop          one run, barrier by barrier, and its report
query         what a program makes, runs and stops

Only `query`, `loop`, `batch`, `starts` and `formats` use Spark.
"""

from headwater.versions.aligned.batch import AlignedBatch, OverwrittenSourceError, UncertainWriteError
from headwater.versions.aligned.checkpoints import CheckpointError
from headwater.versions.aligned.claims import DataVersionConflictError, GroupClaims, JobTakenOverError, groups_in
from headwater.versions.aligned.formats.protocol import UnalignableTableError, UnmarkedWriteError
from headwater.versions.aligned.query import AlignedQuery, aligned_query
from headwater.versions.aligned.starts import start_options
from headwater.versions.cuts import Cut, DataVersion, GroupState, JobProgress, TableSnapshot

__all__ = [
    "AlignedBatch",
    "AlignedQuery",
    "CheckpointError",
    "Cut",
    "DataVersion",
    "DataVersionConflictError",
    "GroupClaims",
    "GroupState",
    "JobProgress",
    "JobTakenOverError",
    "OverwrittenSourceError",
    "TableSnapshot",
    "UnalignableTableError",
    "UncertainWriteError",
    "UnmarkedWriteError",
    "aligned_query",
    "groups_in",
    "start_options",
]
