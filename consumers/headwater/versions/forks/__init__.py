"""Forks of Structured Streaming's checkpoints: a query goes on behind one of its batches, from other tables.

checkpoint     reads the files of a checkpoint: the query's id, offsets, commits
state_files    finds the files of a batch's state, and says which are missing
sources        reads what an offset says, and moves it to another table
delta          positions in Delta tables
iceberg        positions in Iceberg tables
hadoop_files   writes files as Hadoop's local file system does, with their checksums
fork           plans a fork and makes it
progress       says how far a query has read its tables

It reads and writes files alone: it needs neither Spark nor a store.
"""

from headwater.versions.forks.checkpoint import ForkError
from headwater.versions.forks.fork import ForkPlan, plan_fork, write_fork
from headwater.versions.forks.sources import MovedSource, SourceMove

__all__ = ["ForkError", "ForkPlan", "MovedSource", "SourceMove", "plan_fork", "write_fork"]
