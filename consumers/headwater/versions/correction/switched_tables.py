"""The tables of a switch in a Spark session, and what the store is told of them.

A switched table is reported as production would have made it: from the switched tables of the chain, and from what the
jobs read on the mirrors besides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Connection, select

from headwater.events.envelope import Event
from headwater.events.jobs import Input, ReadMode
from headwater.events.names import DatasetId
from headwater.events.scalars import Format
from headwater.lineage.mapping.keys import dataset_hash
from headwater.lineage.questions.traversal.snapshot_rows import SnapshotRead, load_sources, load_writes
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.tables import table_of
from headwater.lineage.store import Store
from headwater.versions.aligned.formats import TableLooker
from headwater.versions.branches import Branch, BranchError, FormatBranches, MainMovedError, MainRollBack
from headwater.versions.branches.format_branches import branches_of
from headwater.versions.branches.reporting import BranchEvents, driver_report, store_report
from headwater.versions.correction.journal import Correction
from headwater.versions.correction.switching import SwitchTables, TableSwitch
from headwater.versions.cuts import TableSnapshot
from headwater.versions.spark_tables import identify
from headwater.versions.validation.results import full_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class SparkSwitchTables(SwitchTables):
    """Uses the session's JVM. `tables` are those of the correction, each with the branch that its mirror is."""

    def __init__(self, spark: SparkSession, store: Store, tables: Mapping[str, str]) -> None:
        self._spark: Final = spark
        self._store: Final = store
        self._tables: Final = tables
        self._tell: Final[Callable[[Event], None]] = driver_report(spark) or store_report(store)
        self._known: Final[dict[str, FormatBranches]] = {}

    def head_of_table(self, table: str) -> int | None:
        return self._formats(table).main_head()

    def head_of_mirror(self, table: str, branch: str) -> int | None:
        found = _find(self._formats(table), branch)
        return None if found is None else found.head

    def problem(self, table: str, branch: str) -> str | None:
        formats = self._formats(table)
        if not formats.has_changed_columns(_require(_find(formats, branch), table)):
            return None
        return (
            f"{table} has got other columns since its mirror was made, and the switch would take them away: change the "
            "mirror by the same ALTER TABLE (`headwater correct sql`), or abort the correction and begin it again"
        )

    def switch(self, switch: TableSwitch) -> int:
        formats = self._formats(switch.table)
        branch = _require(_find(formats, switch.branch), switch.table)
        if branch.head != switch.head:
            raise MainMovedError(f"the mirror of {switch.table} was written to since the switch was begun")
        planned = formats.plan_move(branch)
        if planned.previous != switch.expected:
            raise MainMovedError.of(switch.table, planned.previous, switch.expected)
        moved = formats.move_main(replace(planned, lost_tags=()), switch.mark)
        return _known(moved.snapshot)

    def find(self, table: str, previous: int | None, mark: str) -> int | None:
        return self._formats(table).marked_snapshot(previous, mark)

    def go_back(self, table: str, to: int, expected: int, mark: str) -> int:
        return self._formats(table).roll_back(to, expected, mark).snapshot

    def report(self, switch: TableSwitch, switched: Mapping[str, int]) -> None:
        if switch.snapshot == switch.expected:  # the mirror had nothing of its own
            return
        formats = self._formats(switch.table)
        inputs = self._inputs(switch, switched)
        snapshot, barrier = _known(switch.snapshot), _barrier(switch)
        self._tell(BranchEvents(formats).switched(snapshot, switch.expected, inputs, barrier))

    def report_end(self, found: Correction, switched: Sequence[TableSwitch]) -> None:
        wrong = (BranchEvents(self._formats(found.plan.source)).identifier, found.plan.snapshot)
        for each in switched:
            moved = (each.expected, each.snapshot)
            self._tell(
                BranchEvents(self._formats(each.table)).correction_switched(found.name, each.branch, wrong, moved)
            )

    def report_return(self, table: str, to: int, expected: int, snapshot: int) -> None:
        for event in BranchEvents(self._formats(table)).rolled_back(MainRollBack(to, expected, snapshot, expected)):
            self._tell(event)

    def location_of_table(self, table: str) -> str:
        return self._formats(table).location

    def remove_mirror(self, table: str, branch: str) -> None:
        formats = self._formats(table)
        found = _find(formats, branch)
        if found is not None:
            formats.delete_mirror(found)

    def label_of(self, name: str) -> str:
        catalog, identifier = identify(self._spark, name)
        return ".".join([str(catalog.name()), *map(str, identifier.namespace()), str(identifier.name())])

    def position(self, name: str, snapshot: int) -> TableSnapshot:
        return TableLooker(self._spark).source(name, anew=True).at(snapshot)

    def _formats(self, table: str) -> FormatBranches:
        known = self._known.get(table)
        if known is None:
            known = self._known[table] = branches_of(self._spark, full_name(table))
        known.look()
        return known

    def _inputs(self, switch: TableSwitch, switched: Mapping[str, int]) -> tuple[Input, ...]:
        """Return what the jobs read that made a mirror: mirrors by the tables whose place they have taken."""
        places = {table: self._mirror_place(table) for table in self._tables}
        mirrors = {(_key(place), branch): table for table, (place, branch) in places.items()}
        place, branch = places[switch.table]
        formats = self._formats(switch.table)
        numbers = formats.own_snapshots(_require(_find(formats, switch.branch), switch.table))
        with self._store.engine.connect() as connection:
            reads = _reads_of(connection, place, branch, numbers, switch.made_since)
            names = _datasets(connection, {read.dataset for read in reads if read.dataset is not None})
        found = dict[tuple[Any, ...], Input]()
        for read in reads:
            if read.dataset is None:
                continue
            table = mirrors.get((read.dataset, read.branch))
            if table == switch.table:
                continue  # it was made on itself, as each commit is
            if table is None:
                made = _input(read, names[read.dataset])
            elif table in switched:
                made = self._switched_input(table, switched[table])
            else:
                continue
            found[(made.dataset, made.branch, made.snapshot, made.mode)] = made
        return tuple(found.values())

    def _switched_input(self, table: str, snapshot: int) -> Input:
        place = BranchEvents(self._formats(table)).identity
        return Input(**place, mode=ReadMode.STATE, snapshot=snapshot)

    def _mirror_place(self, table: str) -> tuple[DatasetId, str | None]:
        """Return the dataset and the branch that events have for what is read and written on a mirror."""
        formats = self._formats(table)
        branch = _require(_find(formats, self._tables[table]), table)
        other = formats.table_of(branch)
        place = BranchEvents(formats if other is None else other).identity
        return place["dataset"], branch.name if other is None else None


def _reads_of(
    connection: Connection, place: DatasetId, branch: str | None, snapshots: Sequence[int], since: int
) -> list[SnapshotRead]:
    """Return what the commits read that wrote a branch since a time: numbers of snapshots may have come again."""
    found = load_writes(connection, [(_key(place), each) for each in snapshots])
    writes = [write for write in found if write.branch == branch and write.at >= since]
    return [read for reads in load_sources(connection, writes).values() for read in reads]


def _barrier(switch: TableSwitch) -> int:
    """Return a number that is always the same for a switch, so that one that is told twice is known once."""
    digest = sha256(switch.mark.encode()).digest()
    return (switch.began_at // 1000 << 20) + (int.from_bytes(digest[:3], "big") & 0xFFFFF)


def _key(dataset: DatasetId) -> bytes:
    key = dataset_hash(dataset)
    assert key is not None  # noqa: S101 - there is a dataset
    return key


def _datasets(connection: Connection, keys: set[bytes]) -> dict[bytes, DatasetId]:
    row = table_of(t.DATASET).c
    found = connection.execute(select(row.id, row.namespace, row.name).where(row.id.in_(keys)))
    return {bytes(each.id): DatasetId(namespace=each.namespace, name=each.name) for each in found}


def _input(read: SnapshotRead, dataset: DatasetId) -> Input:
    return Input(
        dataset=dataset,
        generation=read.generation,
        format=Format.UNKNOWN if read.format is None else Format(read.format),
        branch=read.branch,
        main=read.branch is None,
        mode=ReadMode(read.mode),
        snapshot=read.snapshot,
        version=read.version,
    )


def _find(formats: FormatBranches, branch: str) -> Branch | None:
    return next((each for each in formats.branches() if each.name.lower() == branch.lower()), None)


def _require(branch: Branch | None, table: str) -> Branch:
    if branch is None:
        raise BranchError(
            f"the mirror of {table} is gone: take back by `headwater correct switch … --back` what was switched, abort "
            "the correction, and begin it again"
        )
    return branch


def _known(snapshot: int | None) -> int:
    assert snapshot is not None  # noqa: S101 - a moved table has one
    return snapshot
