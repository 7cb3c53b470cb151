"""What a driver reports of a commit counts more than what was found in a log, whichever the store gets first."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection

from headwater.consumers.reconcile.comparison import CommitStatus, compare, reconciled_event
from headwater.consumers.reconcile.model import LogCommit, TableLog
from headwater.events import AlterTable, Committed, Event, Format, Input, Output
from headwater.events.catalog import CatalogContext
from headwater.events.clock import micros_of
from headwater.events.jobs import CommitKind, OverwriteScope, ReadMode
from headwater.lineage.mapping.keys import dataset_hash
from headwater.lineage.questions.datasets import Dataset
from headwater.lineage.questions.names import UnknownNameError
from headwater.lineage.questions.snapshots import upstream_snapshots
from tests.kit.effort import examples
from tests.kit.lineage.scripted_producer import ScriptedProducer, at, dataset, place, store
from tests.kit.stores import memory_connection

pytestmark = pytest.mark.slow

K, X = CommitKind, OverwriteScope
MOST = 12
TARGET = place("t", format=Format.PAIMON)


@pytest.fixture(scope="module")
def connection() -> Iterator[Connection]:
    with memory_connection() as connection:
        yield connection


def reported(number: int, *, alters: bool) -> Event:
    """A driver's word of a snapshot: that of its number was made from the source's of the same number."""
    producer = ScriptedProducer(number)
    if alters:
        context = CatalogContext(name="lake", class_name="org.apache.paimon.spark.SparkCatalog")
        fields: dict[str, Any] = {"context": context, "identifier": TARGET["table"], "produced": number}
        return producer.emit(
            number + 0.5, AlterTable, dataset=TARGET["dataset"], generation="1", parent=number - 1 or None, **fields
        )
    read = Input(**place("s", format=Format.PAIMON), mode=ReadMode.STATE, snapshot=100 + number)
    output = Output(
        **TARGET,
        snapshot=number,
        parent=number - 1 or None,
        commit_kind=K.APPEND,
        replaced=X.NOTHING,
        made_from=(0,),
    )
    return producer.emit(number + 0.5, Committed, barrier=number, inputs=(read,), outputs=(output,))


def log_of(numbers: int) -> TableLog:
    commits = (LogCommit(n, micros_of(at(n)), K.APPEND, X.NOTHING, n - 1 or None) for n in range(1, numbers + 1))
    return TableLog(Format.PAIMON, "1", tuple(commits), reuses_numbers=True)


def answers(connection: Connection, numbers: int, basis: str) -> dict[int, tuple[set[tuple[int, int]], bool]]:
    """For each snapshot its edges, and whether something about its inputs is unknown."""
    found = {}
    about = Dataset(dataset_hash(dataset("t")) or b"")
    for number in range(1, numbers + 1):
        try:
            answer = upstream_snapshots(connection, about, number, basis=basis)
        except UnknownNameError:
            found[number] = (set[tuple[int, int]](), False)
            continue
        edges = {(each.target.snapshot or 0, each.source.snapshot or 0) for each in answer.rows}
        is_unknown = any(limit.why.value == "UNKNOWN_SOURCES" for limit in answer.limits)
        found[number] = (edges, is_unknown)
    return found


@settings(max_examples=examples(25), deadline=None)
@given(
    lost=st.sets(st.integers(1, MOST)),
    repaired=st.sets(st.integers(1, MOST)),
    altered=st.sets(st.integers(1, MOST), max_size=2),
    seed=st.integers(0, 2**32),
)
def test_the_order_of_repairs_and_of_drivers_events_makes_no_difference(
    connection: Connection, lost: set[int], repaired: set[int], altered: set[int], seed: int
) -> None:
    """`repaired` are commits that were repaired, many of them too early: the driver's event was on its way."""
    log = log_of(MOST)
    by_driver = {n: reported(n, alters=n in altered) for n in range(1, MOST + 1) if n not in lost}
    by_repair = [reconciled_event(dataset("t"), log, each) for each in log.commits if each.snapshot in repaired]
    events = [*by_driver.values(), *by_repair, *by_repair]
    Random(seed).shuffle(events)
    with connection.begin_nested() as nested:
        for each in events:
            store(connection, [each])
        found = {basis: answers(connection, MOST, basis) for basis in ("commit", "state")}
        key = dataset_hash(dataset("t")) or b""
        statuses = {each.commit.snapshot: each.status for each in compare(connection, key, log, micros_of(at(99)))}
        nested.rollback()

    for number in range(1, MOST + 1):
        if number in by_driver:
            assert statuses[number] is CommitStatus.KNOWN
            edges = set() if number in altered else {(number, 100 + number)}
            assert found["commit"][number] == (edges, False)
        elif number in repaired:
            assert statuses[number] is CommitStatus.RECONCILED
            assert found["commit"][number] == (set(), True)
        else:
            assert statuses[number] is CommitStatus.UNKNOWN
    last = next((n for n in range(1, MOST + 1) if n not in by_driver and n not in repaired), MOST + 1)
    for number in range(1, last):  # up to the first that nobody knows, states are those of the plain history
        edges, is_unknown = found["state"][number]
        assert edges == {(n, 100 + n) for n in range(1, number + 1) if n in by_driver and n not in altered}
        assert is_unknown is any(n not in by_driver for n in range(1, number + 1))


@pytest.mark.parametrize("rolled_back", [False, True])
def test_a_number_that_was_given_again_is_another_commit(connection: Connection, *, rolled_back: bool) -> None:
    """Paimon gives the numbers of snapshots that were rolled back again: an hour later it isn't the driver's commit."""
    later = LogCommit(5, micros_of(at(5) + timedelta(minutes=60 if rolled_back else 0)), K.APPEND, X.NOTHING, 4)
    log = TableLog(Format.PAIMON, "1", (later,), reuses_numbers=True)
    key = dataset_hash(dataset("t")) or b""
    with connection.begin_nested() as nested:
        store(connection, [reported(5, alters=False)])
        [before] = compare(connection, key, log, micros_of(at(999)))
        store(connection, [reconciled_event(dataset("t"), log, later)])
        [after] = compare(connection, key, log, micros_of(at(999)))
        answer = upstream_snapshots(connection, Dataset(key), 5)
        nested.rollback()
    assert before.status is (CommitStatus.UNKNOWN if rolled_back else CommitStatus.KNOWN)
    assert after.status is (CommitStatus.RECONCILED if rolled_back else CommitStatus.KNOWN)
    assert len(answer.rows) == (0 if rolled_back else 1)
