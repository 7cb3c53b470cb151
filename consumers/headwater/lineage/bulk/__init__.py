"""Merging much at once, and what a writer keeps of itself beside the rows.

api           the second interface of a store, and what it takes
database      that interface in a database
transactions  begun again where they met another one
natures       what kind of an error a database raised
merging       rows by the quickest way that a database has
packing       rows as tuples, in the order of a table's columns
statements    upserts as texts for a driver
many, mysql, postgres    each database's way
tables        the tables outside the digest
positions     offsets, and up to when everything is here
timeline      the instants of writers
letters       events that couldn't be stored
epochs        deletions, counted
putting       insert or change, in each database's words
"""

from headwater.lineage.bulk.api import (
    NOTHING,
    BulkLineageMeta,
    DeadLetter,
    Ingest,
    Instant,
    LetterState,
    Merged,
    Offset,
    Partition,
    Reason,
    State,
    Told,
    Work,
)
from headwater.lineage.bulk.database import DatabaseBulkMeta
from headwater.lineage.bulk.epochs import EpochMoved, bump_epoch
from headwater.lineage.bulk.merging import merge_rows

__all__ = [
    "NOTHING",
    "BulkLineageMeta",
    "DatabaseBulkMeta",
    "DeadLetter",
    "EpochMoved",
    "Ingest",
    "Instant",
    "LetterState",
    "Merged",
    "Offset",
    "Partition",
    "Reason",
    "State",
    "Told",
    "Work",
    "bump_epoch",
    "merge_rows",
]
