"""The archive in an Iceberg table of a real catalog, in SQLite: rows and offsets in one commit."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from headwater.cli import main
from headwater.consumers.archive.archiver import Archiver, FlushSettings
from headwater.consumers.archive.columns import SCHEMA, TableBuilder, to_records
from headwater.consumers.archive.iceberg import PROPERTY, IcebergAddress, IcebergArchive
from headwater.consumers.archive.state import OffsetsTakenError
from headwater.consumers.sources import BusRecord, OffsetGap
from headwater.errors import ConfigurationError
from headwater.events.health import GapReason
from headwater.journal import LocalLog
from headwater.lineage.bulk import BusPartition
from tests.kit.archive.records import (
    DATA,
    DAY,
    FIRST,
    NOON,
    SECOND,
    TOPIC,
    ScriptedSource,
    in_order,
    ranges_of,
    records,
)

pytestmark = pytest.mark.slow


@pytest.fixture
def address(tmp_path: Path) -> IcebergAddress:
    (tmp_path / "warehouse").mkdir()
    place = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/warehouse"}
    return IcebergAddress.parse("lake.audit.events", place)


def append(archive: IcebergArchive, found: list[BusRecord], *gaps: OffsetGap) -> None:
    archive.append(TableBuilder(TOPIC).build(found), ranges_of(found), gaps)


def stored(address: IcebergAddress) -> Mapping[BusPartition, list[BusRecord]]:
    """As pyiceberg reads it, in the order of offsets."""
    rows = IcebergArchive(address).table.scan().to_arrow()
    return in_order(sorted(to_records(rows), key=lambda each: (each.partition, each.offset)))


def files(address: IcebergAddress) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = IcebergArchive(address).table.inspect.files().to_pylist()
    return found


def test_rows_come_back_and_are_partitioned_by_day_and_kind(address: IcebergAddress) -> None:
    archive = IcebergArchive(address)
    append(archive, records(FIRST, 0, 20) + records(FIRST, 20, 30, time=NOON + DAY))
    append(archive, records(SECOND, 5, 10))
    expected = {FIRST: records(FIRST, 0, 20) + records(FIRST, 20, 30, time=NOON + DAY), SECOND: records(SECOND, 5, 10)}
    assert stored(address) == expected
    places = {(each["partition"]["day"], each["partition"]["kind"]) for each in files(address)}
    assert places == {(date(2026, 3, day), kind) for day in (1, 2) for kind in ("Committed", "CreateTable")}
    assert IcebergArchive(address).next_offsets("cluster") == {FIRST: 30, SECOND: 10}
    assert IcebergArchive(address).next_offsets("another") == {}


def test_two_processes_take_turns_and_none_archives_twice(address: IcebergAddress) -> None:
    first, second = IcebergArchive(address), IcebergArchive(address)
    append(first, records(FIRST, 0, 10))
    append(second, records(SECOND, 0, 10))  # on the newest snapshot, which it hadn't seen
    with pytest.raises(OffsetsTakenError, match="partition 0 is archived up to offset 10"):
        append(second, records(FIRST, 0, 10))
    append(first, records(FIRST, 10, 15))
    assert stored(address) == {FIRST: records(FIRST, 0, 15), SECOND: records(SECOND, 0, 10)}


def test_a_commit_that_comes_between_is_not_lost(address: IcebergAddress, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = IcebergArchive(address), IcebergArchive(address)
    original = IcebergArchive._make
    attempts: list[str] = []

    def make(self: IcebergArchive, change: Any) -> None:
        def slow(transaction: Any) -> None:
            change(transaction)
            if not attempts:  # ready to be committed; the other one is quicker
                attempts.append("first")
                append(second, records(SECOND, 0, 10))

        attempts.append("made") if attempts else None
        original(self, slow)

    monkeypatch.setattr(IcebergArchive, "_make", make)
    append(first, records(FIRST, 0, 10))
    assert attempts.count("made") >= 2
    assert stored(address) == {FIRST: records(FIRST, 0, 10), SECOND: records(SECOND, 0, 10)}
    assert IcebergArchive(address).next_offsets("cluster") == {FIRST: 10, SECOND: 10}


@pytest.mark.long
def test_an_archiver_fills_it(address: IcebergAddress) -> None:
    archive = IcebergArchive(address)
    source = ScriptedSource(records(FIRST, 0, 90), archive.next_offsets)
    settings = FlushSettings(size=20_000, batch=30, idle=0)
    asyncio.run(Archiver(source, archive, settings, until_end=True).run())
    assert stored(address) == {FIRST: records(FIRST, 0, 90)}
    assert source.confirmed == {FIRST: 90}


def test_small_files_are_compacted_and_old_days_expire(address: IcebergAddress) -> None:
    archive = IcebergArchive(address)
    for at in range(0, 30, 10):
        append(archive, records(FIRST, at, at + 10))
    append(archive, records(FIRST, 30, 40, time=NOON + DAY))
    assert len(files(address)) == 8
    assert archive.compact(date(2026, 3, 3)) == 2
    assert len(files(address)) == 4
    assert stored(address) == {FIRST: records(FIRST, 0, 30) + records(FIRST, 30, 40, time=NOON + DAY)}
    archive.expire(date(2026, 3, 2))
    assert stored(address) == {FIRST: records(FIRST, 30, 40, time=NOON + DAY)}
    assert IcebergArchive(address).next_offsets("cluster") == {FIRST: 40}
    append(archive, records(FIRST, 40, 41))


@pytest.mark.long
def test_offsets_and_gaps_outlive_commits_of_others(address: IcebergAddress) -> None:
    archive = IcebergArchive(address)
    gap = OffsetGap(FIRST, 3, 5, GapReason.LOG_EXPIRED)
    append(archive, [*records(FIRST, 0, 3), *records(FIRST, 5, 9)], gap)
    IcebergArchive(address).table.append(SCHEMA.empty_table())
    with IcebergArchive(address).table.transaction() as other:
        other.set_properties({"owner": "somebody"})
    state = IcebergArchive(address).refresh()
    assert (state.gaps, state.partitions[FIRST].next) == ((gap,), 9)
    assert PROPERTY in IcebergArchive(address).table.properties


@pytest.mark.parametrize("text", ["events", "audit.events", "lake..events"])
def test_an_address_says_how_it_is_written(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"iceberg:CATALOG\.NAMESPACE\.TABLE"):
        IcebergAddress.parse(text, {})


def test_a_catalog_that_is_none_is_named() -> None:
    with pytest.raises(ConfigurationError, match=r"audit\.events"):
        IcebergArchive(
            IcebergAddress.parse("lake.audit.events", {"type": "sql", "uri": "sqlite:////nowhere/at/all.db"})
        )


@pytest.mark.long
def test_commands_take_a_table_for_an_archive(address: IcebergAddress, tmp_path: Path) -> None:
    flags = ["--archive", "iceberg:lake.audit.events"]
    for key, value in address.properties.items():
        flags += ["--iceberg", f"{key}={value}"]
    with LocalLog.open(tmp_path / "log").writer() as log:
        for number, data in enumerate(DATA):
            log.append(data, key=b"%d" % number)
    assert main(["archive", "run", "--bus", f"log:{tmp_path}/log", *flags, "--until-end"]) == 0
    assert sorted(each.data for found in stored(address).values() for each in found) == sorted(DATA)
    assert main(["archive", "run", "--bus", f"log:{tmp_path}/log", *flags, "--until-end"]) == 0
    assert main(["archive", "compact", *flags]) == 0
    assert len([each for found in stored(address).values() for each in found]) == len(DATA)
    assert main(["archive", "status", *flags]) == 78
    assert main(["archive", "expire", *flags, "--older-than", "400d", "--yes"]) == 0
