"""Append-only journals on a local disk: the spool of a driver, and the local log.

`Journal` is the writer's side, `JournalReader` everybody else's, `LocalLog` a directory of journals with several
writers and consumer groups. What is promised, and the format, is in docs/decisions/0005-journal.md.
"""

from __future__ import annotations

from headwater.journal.cursor import Cursor, CursorStart, JournalReader
from headwater.journal.dead_letters import DeadLetterLog
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
from headwater.journal.groups import GroupBatch, GroupMember, MissingPartitionRecords, PartitionRecord
from headwater.journal.inspection import Inspection
from headwater.journal.log import LocalLog, find_orphans, remove_journal, remove_remains
from headwater.journal.options import Fsync, JournalOptions
from headwater.journal.reader import JournalBatch, MissingReason, MissingRecords, Tail
from headwater.journal.record import JournalEntry, JournalRecord, ordering_times
from headwater.journal.recovery import RecoveryResult
from headwater.journal.writer import Journal

__all__ = [
    "ClosedError",
    "Cursor",
    "CursorError",
    "CursorStart",
    "DeadLetterLog",
    "Files",
    "FormatError",
    "Fsync",
    "GroupBatch",
    "GroupMember",
    "Inspection",
    "Journal",
    "JournalBatch",
    "JournalEntry",
    "JournalError",
    "JournalOptions",
    "JournalReader",
    "JournalRecord",
    "LocalLog",
    "LockedError",
    "MissingPartitionRecords",
    "MissingReason",
    "MissingRecords",
    "OsFiles",
    "PartitionRecord",
    "RecordTooLargeError",
    "RecoveryResult",
    "StorageError",
    "StorageFailedError",
    "StorageFullError",
    "SyncFailedError",
    "Tail",
    "find_orphans",
    "ordering_times",
    "remove_journal",
    "remove_remains",
]
