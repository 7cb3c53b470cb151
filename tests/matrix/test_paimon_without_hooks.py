"""Paimon's tables where nothing may be registered with Paimon: what a plan and the table's own files tell is the same,
and where they don't tell it, no number is reported."""

from __future__ import annotations

import pytest

from headwater.events import Committed
from headwater.events.health import GapReason
from tests.kit.formats.paimon_cases import KEYED, KEYS, READS, WRITES, Case
from tests.kit.formats.paimon_place import Place, check, commits, fresh
from tests.kit.spark.driver import PAIMON, Driver, driver_fixture, the

ALIKE = (
    "first",
    "select",
    "save append",
    "no rows",
    "overwrite by nothing",
    "partitions of rows",
    "keyed in dynamic buckets",
    "with a compaction",
    "with partitions that expire",
    "merge by key",
    "delete in files",
    "delete nothing",
    "truncate",
    "drop no partition",
    "CTAS",
    "CTAS of nothing",
    "RTAS",
    "made again",
    "to a branch",
    "sort",
    "two versions",
    "changes",
)

pytestmark = [pytest.mark.long, pytest.mark.needs("paimon")]


driver = driver_fixture(PAIMON, spark__headwater__capture__hooks="off")


@pytest.fixture
def place(driver: Driver) -> Place:
    return fresh(driver)


@pytest.mark.long
@pytest.mark.sample(4)
@pytest.mark.parametrize("case", [case for case in WRITES + READS if case.name in ALIKE], ids=lambda case: case.name)
def test_the_same_is_reported(place: Place, case: Case) -> None:
    place.run(*case.before)
    check(place, case.step, case.made, case.read)


def test_each_case_is_one() -> None:
    assert {case.name for case in WRITES + READS} >= set(ALIKE)


@pytest.mark.long
def test_a_compaction_by_a_user_that_nothing_tells(place: Place) -> None:
    place.run(KEYED, KEYS, KEYS)
    made, _, (gap,) = commits(place.events_of("CALL pai.sys.compact('{db}.k')"))
    assert made == ["k@?[3] COMPACT NOTHING"]
    assert (gap.reason, gap.source and gap.source.dataset) == (GapReason.NOT_EXACT, place.dataset("k"))


@pytest.mark.long
def test_a_scan_without_files_is_of_a_snapshot_that_was_new_lately(place: Place) -> None:
    events = place.events_of("INSERT OVERWRITE {d}.s SELECT * FROM {d}.t WHERE id > 99")
    made, read, (gap,) = commits(events)
    assert (made, read) == (["s@2<1 OVERWRITE ALL"], ["t@?[1, 2]"])
    assert gap.reason is GapReason.NOT_EXACT


@pytest.mark.long
def test_rows_are_told_where_the_snapshot_tells_them(place: Place) -> None:
    (output,) = the(Committed, place.events_of("INSERT INTO {d}.t SELECT * FROM {d}.s")).outputs
    assert (output.rows, output.bytes) == (2, None)
