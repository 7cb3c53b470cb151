"""Append-only journals on a local disk: the spool of a driver, and the local log.

`Journal` is the writer's side, `JournalReader` everybody else's, `LocalLog` a directory of journals with several
writers and consumer groups. What is promised, and the format, is in docs/decisions/0005-journal.md.
"""

from __future__ import annotations

from headwater.journal.compaction import Compacted
from headwater.journal.cursor import Cursor, JournalReader, Start
from headwater.journal.errors import (
    ClosedError,
    CursorError,
    FormatError,
    JournalError,
    LockedError,
    RecordTooLargeError,
    StorageError,
    StorageFailedError,
    StorageFullError,
    SyncFailedError,
)
from headwater.journal.files import Files, OsFiles
from headwater.journal.groups import GroupBatch, GroupMember, PartitionLost, PartitionRecord
from headwater.journal.inspection import Inspection
from headwater.journal.leftovers import find_abandoned, remove_journal
from headwater.journal.log import LocalLog, Tended
from headwater.journal.options import Fsync, JournalOptions
from headwater.journal.reader import Batch, Lost, Tail, Why
from headwater.journal.record import Entry, Record
from headwater.journal.recovery import Recovered
from headwater.journal.writer import Journal

__all__ = [
    "Batch",
    "ClosedError",
    "Compacted",
    "Cursor",
    "CursorError",
    "Entry",
    "Files",
    "FormatError",
    "Fsync",
    "GroupBatch",
    "GroupMember",
    "Inspection",
    "Journal",
    "JournalError",
    "JournalOptions",
    "JournalReader",
    "LocalLog",
    "LockedError",
    "Lost",
    "OsFiles",
    "PartitionLost",
    "PartitionRecord",
    "Record",
    "RecordTooLargeError",
    "Recovered",
    "Start",
    "StorageError",
    "StorageFailedError",
    "StorageFullError",
    "SyncFailedError",
    "Tail",
    "Tended",
    "Why",
    "find_abandoned",
    "remove_journal",
]
