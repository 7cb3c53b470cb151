"""An archive in an Iceberg table, partitioned by day and kind: for object stores, and for whoever has a catalog.

How far each partition of the bus is archived is a property of the table that is set in the same commit as the rows. So
it outlives snapshots, and commits of others, such as a compaction by Spark, don't touch it. Iceberg refuses a commit
that isn't made on the newest snapshot: it is tried again on that, if nobody else archived the same offsets.
"""

from __future__ import annotations

import json
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Final, TypeVar

from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import (
    CommitFailedException,
    CommitStateUnknownException,
    NamespaceAlreadyExistsError,
    NoSuchTableError,
    TableAlreadyExistsError,
)

from headwater.consumers.archive.arrow import ArrowTable
from headwater.consumers.archive.columns import DAY, KIND, SCHEMA
from headwater.consumers.archive.files import sort
from headwater.consumers.archive.state import (
    ArchiveCommit,
    ArchivedRange,
    ArchiveState,
    Operation,
    read_state,
    state_object,
)
from headwater.consumers.sources.api import OffsetGap
from headwater.errors import ConfigurationError, HeadwaterError, TransientError
from headwater.lineage.bulk import BusPartition

T = TypeVar("T")
PROPERTY: Final = "headwater.archive"
"""The table property with the archived offsets."""
_PROPERTIES: Final = {
    "write.parquet.compression-codec": "zstd",
    "write.target-file-size-bytes": str(128 << 20),
    "commit.retry.num-retries": "0",
}
_MOST_ATTEMPTS: Final = 20


@dataclass(frozen=True)
class IcebergAddress:
    """`CATALOG.NAMESPACE.TABLE`, and the properties of the catalog beside those of pyiceberg's own configuration."""

    catalog: str
    table: tuple[str, ...]
    properties: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str, properties: Mapping[str, str]) -> IcebergAddress:
        parts = text.split(".")
        if len(parts) < 3 or not all(parts):
            raise ConfigurationError(f"{text!r} isn't an Iceberg table: write iceberg:CATALOG.NAMESPACE.TABLE")
        return cls(parts[0], tuple(parts[1:]), dict(properties))


class IcebergArchive:
    """Writes an archive into an Iceberg table."""

    def __init__(self, address: IcebergAddress) -> None:
        """Open the table; make it if there is none."""
        self._lock = threading.Lock()
        try:
            self._catalog = load_catalog(address.catalog, **dict(address.properties))
            self._table = self._load(address.table)
        except (HeadwaterError, MemoryError):
            raise
        except Exception as e:  # whatever a catalog and its file system raise
            raise ConfigurationError(f"the Iceberg table {'.'.join(address.table)}: {type(e).__name__}: {e}") from e

    def _load(self, name: tuple[str, ...]) -> Any:
        try:
            return self._catalog.load_table(name)
        except NoSuchTableError:
            pass  # it is made now
        for depth in range(1, len(name)):
            with suppress(NamespaceAlreadyExistsError):
                self._catalog.create_namespace(name[:depth])
        with (
            suppress(TableAlreadyExistsError),
            self._catalog.create_table_transaction(name, SCHEMA, properties=_PROPERTIES) as creation,
            creation.update_spec() as spec,
        ):
            spec.add_identity(DAY)
            spec.add_identity(KIND)
        return self._catalog.load_table(name)

    @property
    def table(self) -> Any:
        """The table, as pyiceberg has it."""
        return self._table

    def refresh(self) -> ArchiveState:
        """Return how far the partitions are archived. It has no files: those are Iceberg's own."""
        with self._lock:
            return self._refresh()

    def _refresh(self) -> ArchiveState:
        self._try(self._table.refresh)
        found = self._table.properties.get(PROPERTY)
        return ArchiveState() if found is None else read_state(json.loads(found))

    def next_offsets(self, cluster: str) -> Mapping[BusPartition, int]:
        return self.refresh().next_offsets(cluster)

    def append(self, table: ArrowTable, ranges: Sequence[ArchivedRange], gaps: Sequence[OffsetGap] = ()) -> None:
        commit = ArchiveCommit(Operation.APPEND, tuple(ranges), tuple(gaps))
        rows = sort(table)

        def add(transaction: Any) -> None:
            state = self._refresh().apply(commit)
            transaction.set_properties({PROPERTY: json.dumps(state_object(state), separators=(",", ":"))})
            transaction.append(rows, snapshot_properties={f"{PROPERTY}.commit": str(state.version)})

        self._commit(add)

    def compact(self, before: date, *, fewest: int = 2) -> int:
        """Rewrite each day and kind that has several files, of days before the given one. Return how many did."""
        with self._lock:
            self._try(self._table.refresh)
            found = self._try(self._table.inspect.partitions).to_pylist()
        small = [
            each["partition"] for each in found if each["file_count"] >= fewest and each["partition"][DAY] < before
        ]
        for place in small:
            self._commit(lambda transaction, place=place: self._rewrite(transaction, place))  # type: ignore[misc]
        return len(small)

    def _rewrite(self, transaction: Any, place: Mapping[str, Any]) -> None:
        where = f"{DAY} = '{place[DAY].isoformat()}' and {KIND} = '{place[KIND]}'"
        rows = self._table.scan(row_filter=where).to_arrow().cast(SCHEMA)
        transaction.overwrite(sort(rows), overwrite_filter=where)

    def expire(self, before: date) -> None:
        """Remove the days before the given one. Their files go when the snapshots that have them expire."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Delete operation did not match", UserWarning)  # there may be none
            self._commit(lambda transaction: transaction.delete(f"{DAY} < '{before.isoformat()}'"))

    def _commit(self, change: Callable[[Any], None]) -> None:
        """Make a commit on the newest snapshot, as often as others are quicker."""
        with self._lock:
            for _ in range(_MOST_ATTEMPTS):
                self._try(self._table.refresh)
                try:
                    self._try(lambda: self._make(change))
                except _CommitConflict:
                    continue
                return
        raise TransientError(f"others commit to {'.'.join(self._table.name())} all the time")

    def _make(self, change: Callable[[Any], None]) -> None:
        transaction = self._table.transaction()
        change(transaction)
        transaction.commit_transaction()

    def _try(self, work: Callable[[], T]) -> T:
        """Turn errors of a catalog, which are of many kinds, into TransientErrors."""
        try:
            return work()
        except (HeadwaterError, MemoryError, _CommitConflict):
            raise
        except CommitStateUnknownException as e:
            raise TransientError(f"whether a commit was made isn't known: {e}") from e
        except CommitFailedException as e:
            raise _CommitConflict from e
        except Exception as e:
            raise TransientError(f"the Iceberg table: {type(e).__name__}: {e}") from e

    def close(self) -> None:
        """Do nothing: nothing stays open."""


class _CommitConflict(Exception):  # noqa: N818 - it isn't seen outside
    """Another process has committed meanwhile."""
