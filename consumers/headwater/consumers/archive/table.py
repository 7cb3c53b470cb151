"""An archive: a Delta table in a directory or an object store.

How far a partition of the bus is archived is an application transaction of the table, set in the commit that adds the
rows. Delta refuses a commit if another one has set the same transaction meanwhile. So each record is there once,
however many processes archive, and whichever of them is believed dead.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from deltalake import ColumnProperties, CommitProperties, DeltaTable, Transaction, WriterProperties, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.fs import DeltaStorageHandler
from typing_extensions import Self

from headwater.consumers.archive.arrow import ArrowTable, pa, pq
from headwater.consumers.archive.columns import PARTITIONED_BY, SCHEMA
from headwater.errors import ConfigurationError, HeadwaterError, TerminalError, TransientError
from headwater.lineage.bulk import BusPartition

FILE_BYTES: Final = 32 << 20
"""The size that large files get. A reader has one of them in memory for each partition that it is in."""
_ROW_GROUP: Final = 8_192
_LONGEST_STATISTIC: Final = 1_024
_MOST_ATTEMPTS: Final = 20
_CONFIGURATION: Final[Mapping[str, str | None]] = {
    "delta.dataSkippingStatsColumns": "cluster,topic,offset,append_time,checksum,gap_end,event_time,kind",
    "delta.deletedFileRetentionDuration": "interval 1 days",
    "delta.logRetentionDuration": "interval 7 days",
}
_WRITER: Final = WriterProperties(
    compression="ZSTD",
    compression_level=1,
    max_row_group_size=_ROW_GROUP,
    statistics_truncate_length=_LONGEST_STATISTIC,
    column_properties={name: ColumnProperties(dictionary_enabled=False) for name in ("data", "offset", "checksum")},
)


class OffsetsTakenError(HeadwaterError):
    """Another process archived these offsets meanwhile."""


class DamagedFileError(TerminalError):
    """A file of the archive isn't what was written."""


class ArchivedRange(NamedTuple):
    """What an append holds of a partition: every record from `first` to before `end`."""

    partition: BusPartition
    first: int
    end: int


class ArchivedPartition(NamedTuple):
    """How far a partition is archived."""

    topic: str
    first: int
    next: int


class ArchiveFile(NamedTuple):
    """A file of the archive. It has rows of one day and one partition of the bus."""

    path: str
    """As Delta's log has it, without its escapes: relative to the table."""
    day: date
    partition: BusPartition
    topic: str
    first: int
    end: int
    """Behind the last offset that it says something of."""
    records: int
    gaps: int
    size: int


@dataclass(frozen=True)
class ArchiveState:
    """An archive after a commit."""

    version: int = -1
    files: tuple[ArchiveFile, ...] = ()
    partitions: Mapping[BusPartition, ArchivedPartition] = field(default_factory=dict)


class EventArchive:
    """Reads and writes one archive. Its methods may be called from two threads."""

    def __init__(self, address: str, table: DeltaTable) -> None:
        self.address: Final = address
        self._table = table
        self._files: Final[Any] = DeltaStorageHandler(address)
        self._lock = threading.RLock()
        self._state = ArchiveState()

    @classmethod
    def create(cls, address: str | Path) -> Self:
        """Open an archive to write to it; make one if there is none."""
        where = str(address)
        _refuse_other_directory(where)
        with _opening(where):
            for _ in range(_MOST_ATTEMPTS):
                try:
                    table = DeltaTable.create(
                        where, SCHEMA, "ignore", list(PARTITIONED_BY), configuration=_CONFIGURATION
                    )
                except CommitFailedError:  # another process makes it
                    continue
                return cls(where, _check_table(where, table))
        raise TransientError(f"others make the archive {where} all the time")

    @classmethod
    def open(cls, address: str | Path) -> Self:
        """Open an archive to read it. Raises a ConfigurationError if there is none."""
        where = str(address)
        with _opening(where):
            return cls(where, _check_table(where, DeltaTable(where)))

    def refresh(self) -> ArchiveState:
        """Return what the archive holds now."""
        with self._lock, _opening(self.address):
            self._table.update_incremental()
            if self._table.version() != self._state.version:
                self._state = self._read_state()
            return self._state

    def next_offsets(self, cluster: str) -> dict[BusPartition, int]:
        """Return where archiving continues in the partitions of a cluster, whoever archived them."""
        return {each: known.next for each, known in self.refresh().partitions.items() if each.cluster == cluster}

    def ends_of(self, partitions: Iterable[BusPartition]) -> dict[BusPartition, int]:
        """Return where archiving continues in these partitions, also in those that have no rows."""
        with self._lock:
            self.refresh()
            found = (
                (partition, self._table.transaction_version(_transaction_of(partition))) for partition in partitions
            )
            return {each: at for each, at in found if at is not None}

    def append(self, rows: ArrowTable, ranges: Sequence[ArchivedRange]) -> None:
        """Add rows, all of them or none. `ranges` say which offsets of partitions in `rows` they are all records of.

        Raises OffsetsTakenError, and adds nothing, if a range doesn't begin where the archive ends: another process was
        quicker. A TransientError leaves open whether they were added: `next_offsets` says it.
        """
        transactions = [Transaction(_transaction_of(each.partition), each.end) for each in ranges]
        ordered = rows.sort_by([(name, "ascending") for name in (*PARTITIONED_BY, "offset", "gap_end")])

        with self._lock:
            for _ in range(_MOST_ATTEMPTS):
                _check(ranges, self.ends_of(each.partition for each in ranges))
                if self.write(ordered, CommitProperties(app_transactions=transactions)):
                    return
        raise TransientError(f"others commit to {self.address} all the time")

    def write(self, rows: Any, commit: CommitProperties | None = None, *, replaced: str | None = None) -> bool:
        """Write rows in place of those that a condition on days, topics and partitions is true of, else beside all.

        Return False, and change nothing, if another process has changed what this stands on since the last `refresh`.
        """
        place: dict[str, Any] = {"mode": "append"} if replaced is None else {"mode": "overwrite", "predicate": replaced}
        try:
            write_deltalake(
                self._table,
                rows,
                target_file_size=FILE_BYTES,
                writer_properties=_WRITER,
                commit_properties=commit,
                **place,
            )
        except CommitFailedError:
            return False
        except (DeltaError, OSError) as e:
            raise TransientError(f"the archive {self.address} can't be written: {_words(e)}") from e
        return True

    def vacuum(self) -> int:
        """Remove files that have been no part of the archive for a day. Return how many."""
        with self._lock, _opening(self.address):
            self._table.update_incremental()
            return len(self._table.vacuum(dry_run=False, full=True))

    def open_file(self, file: ArchiveFile) -> Any:
        """Return a file as pyarrow's ParquetFile; None if it isn't there.

        Raises a DamagedFileError if its bytes are wrong: they stay so, and who tried again would wait for ever.
        """
        try:
            data = self._files.open_input_file(file.path).read()
        except FileNotFoundError:
            return None
        except OSError as e:
            raise TransientError(f"{self.name_of(file)} can't be read: {_words(e)}") from e
        with self.reading(file):
            if len(data) != file.size:
                raise ValueError(f"it has {len(data)} bytes instead of {file.size}")
            return pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True)

    @contextmanager
    def reading(self, file: ArchiveFile) -> Generator[None, None, None]:
        """Turn what decoding a file raises into a DamagedFileError that names it."""
        try:
            yield
        except (pa.ArrowException, ValueError, TypeError, KeyError, OSError) as e:
            raise DamagedFileError(
                f"{self.name_of(file)} is damaged ({_words(e)}): put a copy of it in its place; "
                "`headwater archive verify` lists all that are"
            ) from e

    def read_note(self, name: str) -> bytes | None:
        """Return what `write_note` wrote; None if there is nothing."""
        try:
            return bytes(self._files.open_input_file(name).read())
        except FileNotFoundError:
            return None
        except OSError as e:
            raise TransientError(f"{name} of the archive {self.address} can't be read: {_words(e)}") from e

    def write_note(self, name: str, content: bytes) -> None:
        """Write a small file beside the table's own."""
        try:
            stream = self._files._handler.open_output_stream(name)  # noqa: SLF001 - the outer one wants another pyarrow
            stream.write(content)
            stream.close()
        except OSError as e:
            raise TransientError(f"{name} of the archive {self.address} can't be written: {_words(e)}") from e

    def name_of(self, file: ArchiveFile) -> str:
        return f"{self.address.rstrip('/')}/{file.path}"

    def close(self) -> None:
        """Do nothing: nothing stays open."""

    def _read_state(self) -> ArchiveState:
        try:
            files = tuple(_file(each) for each in pa.table(self._table.get_add_actions(flatten=True)).to_pylist())
        except (KeyError, TypeError) as e:
            raise TerminalError(
                f"the archive {self.address} has files without statistics of offsets ({_words(e)}): compact it by "
                "`headwater archive compact` only"
            ) from e
        partitions: dict[BusPartition, ArchivedPartition] = {}
        for each in sorted(files, key=lambda file: file.first, reverse=True):
            known = partitions.get(each.partition)
            end = each.end if known is None else max(known.next, each.end)
            partitions[each.partition] = ArchivedPartition(each.topic, each.first, end)
        for where, found in partitions.items():
            at = self._table.transaction_version(_transaction_of(where))
            partitions[where] = found if at is None else found._replace(next=at)
        return ArchiveState(self._table.version(), files, partitions)


def _file(action: Mapping[str, Any]) -> ArchiveFile:
    where = BusPartition(action["min.cluster"], action["partition.topic_id"], action["partition.partition"])
    gaps = action["null_count.checksum"]
    return ArchiveFile(
        unquote(action["path"]),
        action["partition.day"],
        where,
        action["min.topic"],
        action["min.offset"],
        max(action["max.offset"] + 1, action["max.gap_end"] or 0),
        action["num_records"] - gaps,
        gaps,
        action["size_bytes"],
    )


def _check(ranges: Iterable[ArchivedRange], ends: Mapping[BusPartition, int]) -> None:
    for each in ranges:
        known = ends.get(each.partition, each.first)
        if known != each.first:
            raise OffsetsTakenError(
                f"partition {each.partition.number} is archived up to offset {known}, and not to {each.first}: "
                "another process archives it too"
            )


def _transaction_of(partition: BusPartition) -> str:
    return f"headwater/{partition.cluster}/{partition.topic}/{partition.number}"


def _refuse_other_directory(address: str) -> None:
    directory = Path(address)
    if "://" in address or not directory.exists():
        return
    if not directory.is_dir():
        raise ConfigurationError(f"{address} isn't a directory: name another one")
    if any(directory.iterdir()) and not (directory / "_delta_log").is_dir():
        raise ConfigurationError(f"{address} isn't an archive, and isn't empty: name another directory")


def _check_table(address: str, table: DeltaTable) -> DeltaTable:
    missing = set(SCHEMA.names) - {each.name for each in table.schema().fields}
    if missing or tuple(table.metadata().partition_columns) != PARTITIONED_BY:
        raise ConfigurationError(f"{address} is a Delta table, but no archive of events: name another place")
    return table


@contextmanager
def _opening(address: str) -> Generator[None, None, None]:
    """Turn the library's errors into ours."""
    try:
        yield
    except TableNotFoundError as e:
        raise ConfigurationError(f"{address} isn't an archive: there is no Delta table. Which place is it?") from e
    except DeltaError as e:
        raise TerminalError(
            f"the log of the archive {address} can't be read ({_words(e)}): restore {address.rstrip('/')}/_delta_log"
        ) from e
    except OSError as e:
        raise TransientError(f"the archive {address} can't be reached: {_words(e)}") from e


def _words(error: BaseException) -> str:
    """Return the first line of an error: deltalake's have traces behind it."""
    return str(error).strip().partition("\n")[0].replace("\x1b", "") or type(error).__name__
