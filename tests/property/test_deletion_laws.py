"""What was deleted as a set: memory and SQL agree on every row, however the set is named; and what is purged on the way
is the same in the end as what is purged at the end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from functools import cache
from typing import Any
from uuid import UUID

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, Engine, create_engine, select
from sqlalchemy.pool import StaticPool

from headwater.events import (
    CatalogId,
    CatalogOptionsDeclared,
    Committed,
    DatasetId,
    Event,
    Input,
    JobName,
    LineageDeleted,
    Output,
    TableName,
)
from headwater.events.administration import LineageScope
from headwater.lineage.bulk import merge_rows
from headwater.lineage.maintenance.purge import erase_commits, find_erasable, last_batches
from headwater.lineage.mapping import map_event
from headwater.lineage.rows import RowSet
from headwater.lineage.rows import tables as t
from headwater.lineage.rows.tombstones import DATA, TABLES_OF, CatalogNames, TombstoneIndex, deletion_subject, is_hidden
from headwater.lineage.sql import METADATA, store_digest
from headwater.lineage.sql.accesses import access_of
from headwater.lineage.sql.tables import table_of
from headwater.lineage.sql.tombstones import not_hidden
from headwater.testing.examples import CONTEXT
from tests.kit.effort import examples
from tests.kit.lineage.scripted_producer import NOON

MINUTE = timedelta(minutes=1)
JOBS = (JobName(name="a"), JobName(name="b"), JobName(namespace="n", name="a"))
RUNS = (UUID(int=11), UUID(int=12))
CATALOGS = (CatalogId(type="hadoop", location="s3://one"), CatalogId(type="hadoop", location="s3://two"))
DATASETS = tuple(DatasetId(namespace=place, name=name) for place in ("s3://one", "s3://two") for name in ("x", "y"))
MINUTES = st.integers(0, 3)


def maybe(values: Iterable[Any]) -> st.SearchStrategy[Any]:
    return st.sampled_from([None, *values])


@st.composite
def places(draw: st.DrawFn) -> dict[str, Any]:
    name = TableName(catalog=draw(st.sampled_from(["c", "d"])), database="s", table=draw(st.sampled_from(["x", "y"])))
    return {
        "dataset": draw(maybe(DATASETS)),
        "table": draw(maybe([name])),
        "generation": draw(maybe(["1", "2"])),
        "snapshot": draw(maybe([1, 2])),
    }


@st.composite
def committed(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "kind": Committed,
        "barrier": draw(st.integers(1, 2)),
        "job": draw(st.sampled_from([JOBS[0], JOBS[0], JOBS[2], None])),
        "parent_job": draw(maybe(JOBS[:2])),
        "run": draw(st.sampled_from(RUNS)),
        "batch_id": draw(st.sampled_from([None, 1, 1])),
        "inputs": tuple(Input(**each) for each in draw(st.lists(places(), max_size=2))),
        "outputs": tuple(Output(**each) for each in draw(st.lists(places(), max_size=2))),
    }


NAMED = {
    "of_job": st.sampled_from(JOBS[:2]),
    "of_run": st.sampled_from(RUNS),
    "dataset": st.sampled_from(DATASETS),
    "generation": st.sampled_from(["1", "2"]),
    "up_to_snapshot": st.sampled_from([1, 2]),
    "catalog": st.sampled_from(CATALOGS),
}
SETS: tuple[tuple[str, ...], ...] = (
    *((), ("of_job",), ("of_run",), ("dataset",), ("catalog",), ("of_job", "of_run"), ("of_job", "dataset")),
    *(("dataset", "generation"), ("dataset", "up_to_snapshot"), ("of_run", "catalog"), tuple(NAMED)),
)
SCOPES = (LineageScope.ALL, LineageScope.ALL, LineageScope.DATA, LineageScope.TABLES, LineageScope.SINK_TABLES)


@st.composite
def deleted(draw: st.DrawFn) -> dict[str, Any]:
    """What names little covers much: a set that many things name is empty mostly."""
    names = draw(st.sampled_from(SETS))
    return {
        "kind": LineageDeleted,
        "scope": draw(st.sampled_from(SCOPES)),
        "steps": draw(st.booleans()),
        "before": NOON + draw(st.sampled_from([1, 2, 3, 3])) * MINUTE,
        **{name: draw(NAMED[name]) for name in names},
    }


@st.composite
def declared(draw: st.DrawFn) -> dict[str, Any]:
    context = {"id": draw(st.sampled_from(CATALOGS)), "name": draw(st.sampled_from(["c", "d"]))}
    return {"kind": CatalogOptionsDeclared, "context": CONTEXT.model_copy(update=context)}


@st.composite
def events(draw: st.DrawFn) -> list[Event]:
    """Each at a time of its own producer's; commits of different producers meet in a barrier where a stream's do. A
    stream has one parent: where it hadn't, an old copy of one barrier would bring back what a newer one had hidden. A
    barrier of a stream has one run: what becomes of it where a deleted run was the first one has a test of its own."""
    emitted: list[Event] = []
    parents: dict[JobName | None, JobName | None] = {}
    runs: dict[tuple[JobName | None, int], UUID] = {}
    for sequence, fields in enumerate(draw(st.lists(committed() | deleted() | declared(), min_size=2, max_size=8)), 1):
        kind = fields.pop("kind")
        incarnation: dict[str, Any] = {"incarnation": UUID(int=500)} if fields.get("batch_id") else {}
        if incarnation:
            fields["parent_job"] = parents.setdefault(fields["job"], fields["parent_job"])
            fields["run"] = runs.setdefault((fields["job"], fields["barrier"]), fields["run"])
        envelope: dict[str, Any] = {"producer": UUID(int=sequence), "sequence": 1, "family_sequence": 1}
        ahead = 3 if kind is LineageDeleted else draw(MINUTES)
        time = NOON + ahead * MINUTE
        envelope |= {"time": time, **fields, **incarnation}
        emitted.append(kind(**envelope))
    return emitted


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    engine = create_engine("sqlite://", poolclass=StaticPool)
    METADATA.create_all(engine)
    yield engine
    engine.dispose()


def merge(connection: Connection, emitted: Iterable[Event]) -> None:
    merge_rows(connection, [row for event in emitted for row in map_event(event)])


def visible_in_sql(connection: Connection) -> set[bytes]:
    return {bytes(each) for chosen in selections() for each in connection.scalars(chosen)}


@cache
def selections() -> list[Any]:
    lineage, commit = table_of(t.TABLE_LINEAGE).c, table_of(t.COMMIT).c
    found = [
        select(lineage.id).where(lineage.side == side, not_hidden(lineage, lineage, scopes))
        for side, scopes in TABLES_OF.items()
    ]
    for row in (access_of(t.READ).c, access_of(t.WRITE).c):
        its = (row.commit_id == commit.id, row.barrier == commit.barrier)
        found.append(select(row.id).where(*its, not_hidden(row, commit, DATA)))
    return found


def visible_in_memory(emitted: Iterable[Event]) -> tuple[set[bytes], set[bytes]]:
    """By what tombstones name, and by looking at every one."""
    state = RowSet()
    for event in emitted:
        state.merge(map_event(event))
    catalogs = CatalogNames(
        state.rows(t.CATALOG), state.rows(t.CATALOG_NAME), {row.id: row for row in state.rows(t.DATASET)}
    )
    stones = list(state.rows(t.TOMBSTONE))
    commits, places = ({row.id: row for row in state.rows(kind)} for kind in (t.COMMIT, t.PLACE))
    subjects = {
        row.id: deletion_subject(row, TABLES_OF[str(row.as_dict["side"])]) for row in state.rows(t.TABLE_LINEAGE)
    }
    for kind in (t.READ, t.WRITE):
        for row in state.rows(kind):
            commit, place = (rows[row.as_dict[name]] for rows, name in ((commits, "commit_id"), (places, "place_id")))  # type: ignore[index]
            subjects[row.id] = deletion_subject(row, DATA, commit.as_dict, place)
    quick = TombstoneIndex(stones)
    slow = {key for key, subject in subjects.items() if not is_hidden(subject, stones, catalogs)}
    return {key for key, subject in subjects.items() if not quick.hide(subject, catalogs)}, slow


@pytest.mark.slow
@given(events())
@settings(max_examples=examples(100), deadline=None)
def test_memory_and_sql_hide_the_same(engine: Engine, emitted: list[Event]) -> None:
    quick, slow = visible_in_memory(emitted)
    assert quick == slow
    with engine.connect() as connection:
        merge(connection, emitted)
        assert visible_in_sql(connection) == slow
        connection.rollback()


@given(events(), st.integers(1, 4), st.data())
@settings(max_examples=examples(100), deadline=None)
@pytest.mark.slow
def test_purged_on_the_way_or_at_the_end(engine: Engine, emitted: list[Event], size: int, data: st.DataObject) -> None:
    again = data.draw(st.permutations([*emitted, *emitted[::2]]))
    assume(not a_name_changes_hands(emitted))
    rows_at_the_end, at_the_end = purged(engine, [emitted])
    rows_on_the_way, on_the_way = purged(engine, [again[at : at + size] for at in range(0, len(again), size)])
    assert on_the_way == at_the_end
    if not reruns_may_come_late(emitted):
        assert rows_on_the_way == rows_at_the_end


@pytest.mark.slow
def test_a_barrier_that_comes_again_after_a_purge_begins_when_it_was_run_again(engine: Engine) -> None:
    """It finds more that a purge forgets than `docs/deleting.md` says."""

    def run(producer: int, barrier: int, minute: int) -> Committed:
        return Committed(
            producer=UUID(int=producer),
            sequence=1,
            family_sequence=1,
            time=NOON + minute * MINUTE,
            job=JOBS[0],
            run=RUNS[0],
            barrier=barrier,
            batch_id=barrier,
            incarnation=UUID(int=500),
            outputs=(Output(dataset=DATASETS[0], snapshot=minute),),
        )

    first, again, following = run(1, 1, 0), run(2, 1, 2), run(3, 2, 3)
    deletion = LineageDeleted(
        producer=UUID(int=4),
        sequence=1,
        family_sequence=1,
        time=NOON + 3 * MINUTE,
        scope=LineageScope.ALL,
        before=NOON + MINUTE,
    )
    emitted: list[Event] = [first, following, deletion, again]
    assert reruns_may_come_late(emitted)
    assert not reruns_may_come_late([first, following, deletion])
    begins = []
    for batches in ([emitted], [[each] for each in emitted]):
        with engine.connect() as connection:
            for batch in batches:
                merge(connection, batch)
                erase_commits(connection, find_erasable(connection, last_batches(connection)).can_go)
            commit = table_of(t.COMMIT).c
            rows = connection.execute(select(commit.first, commit.last, commit.batch_id).order_by(commit.barrier)).all()
            connection.rollback()
        begins.append([row.first for row in rows])
        assert [row.batch_id for row in rows] == [1, 2]
    (at_the_end, _), (on_the_way, _) = begins
    assert at_the_end < on_the_way


@pytest.mark.slow
def test_what_only_a_deleted_run_wrote_in_a_barrier_stays_away_after_a_purge(engine: Engine) -> None:
    """Another run ran the barrier again, and its event came only after the purge: `docs/deleting.md` says so."""

    def run(producer: int, barrier: int, run_id: UUID, *outputs: Output) -> Committed:
        envelope: dict[str, Any] = {"producer": UUID(int=producer), "sequence": 1, "family_sequence": 1, "time": NOON}
        return Committed(
            **envelope,
            job=JOBS[0],
            run=run_id,
            barrier=barrier,
            batch_id=barrier,
            incarnation=UUID(int=500),
            outputs=outputs,
        )

    first, again, following = run(1, 1, RUNS[0], Output(dataset=DATASETS[0])), run(2, 1, RUNS[1]), run(3, 2, RUNS[1])
    deletion = LineageDeleted(
        producer=UUID(int=4),
        sequence=1,
        family_sequence=1,
        time=NOON + 3 * MINUTE,
        scope=LineageScope.ALL,
        of_run=RUNS[0],
        before=NOON + MINUTE,
    )
    emitted: list[Event] = [first, following, deletion, again]
    _, at_the_end = purged(engine, [emitted])
    _, on_the_way = purged(engine, [[each] for each in emitted])
    assert len(at_the_end - on_the_way) == 1
    assert on_the_way <= at_the_end


def a_name_changes_hands(emitted: Sequence[Event]) -> bool:
    """Whether two catalogs have one name, and a deletion names a catalog: what is known by that name only isn't any
    more of the catalog that was purged."""
    owners: dict[str, set[CatalogId | None]] = {}
    for each in emitted:
        if isinstance(each, CatalogOptionsDeclared):
            owners.setdefault(each.context.name, set()).add(each.context.id)
    of_catalogs = any(isinstance(each, LineageDeleted) and each.catalog is not None for each in emitted)
    return of_catalogs and any(len(found) > 1 for found in owners.values())


def reruns_may_come_late(emitted: Iterable[Event]) -> bool:
    """Whether a barrier that isn't its stream's last was run at several times. If a purge comes between their events,
    nobody knows any more when it was run first."""
    times: dict[tuple[JobName | None, int], set[Any]] = {}
    for each in emitted:
        if isinstance(each, Committed) and each.incarnation is not None and each.barrier is not None:
            times.setdefault((each.job, each.barrier), set()).add(each.time)
    last = max((barrier for _, barrier in times), default=0)
    return any(len(found) > 1 and barrier != last for (_, barrier), found in times.items())


def purged(engine: Engine, batches: Iterable[Iterable[Event]]) -> tuple[str, set[bytes]]:
    """The digest of a store that is purged after each batch, and what is visible in it; purging never changes that."""
    with engine.connect() as connection:
        for batch in batches:
            merge(connection, batch)
            before = visible_in_sql(connection)
            erase_commits(connection, find_erasable(connection, last_batches(connection)).can_go)
            assert visible_in_sql(connection) == before
        found = store_digest(connection), visible_in_sql(connection)
        connection.rollback()
    return found
