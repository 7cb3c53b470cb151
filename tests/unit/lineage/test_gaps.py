"""What may be missing, and up to when answers are complete: each story's truth by hand."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Connection

from headwater.events import (
    AlterTable,
    CatalogOptionsDeclared,
    Closed,
    Committed,
    CreateTable,
    DatasetsUnified,
    Event,
    Gap,
    Heartbeat,
    Input,
    JobName,
    JobStarted,
    LineageDeleted,
    Output,
    Table,
    TableName,
)
from headwater.events.catalog import CatalogContext
from headwater.events.changes import SetProperty
from headwater.events.jobs import RangeStart, ReadMode, Source
from headwater.lineage.mapping.events import ARRIVALS_PER_ROW
from headwater.lineage.mapping.keys import dataset_hash
from headwater.lineage.questions.completeness import complete_until, gaps
from headwater.lineage.questions.gaps import GapCause, PossibleGap
from headwater.testing.examples import CONTEXT
from tests.kit.lineage.scripted_producer import ScriptedProducer, at, dataset, place, store
from tests.kit.stores import on_every_database


def beats(producer: ScriptedProducer, first: int, last: int) -> None:
    for minute in range(first, last + 1):
        producer.emit(minute, Heartbeat, interval=60)


def administration(kind: type[Event], **fields: Any) -> ScriptedProducer:
    """What somebody did after all that a test is about."""
    producer = ScriptedProducer(99)
    producer.emit(10, kind, **fields)
    producer.emit(10, Closed)
    return producer


def missing(connection: Connection, minute: float, **asked: object) -> list[PossibleGap]:
    return list(gaps(connection, now=at(minute), **asked))  # type: ignore[arg-type]


@on_every_database
class TestGaps:
    def test_nobody_was_heard(self, connection: Connection) -> None:
        assert complete_until(connection, at(0)) is None
        assert missing(connection, 0) == []

    def test_one_that_is_alive_holds_all_back_to_its_last_heartbeat(self, connection: Connection) -> None:
        slow, quick = ScriptedProducer(1), ScriptedProducer(2)
        beats(slow, 0, 1)
        beats(quick, 0, 3)
        store(connection, slow, quick)
        assert complete_until(connection, at(3.5)) == at(1)
        assert missing(connection, 3.5) == []

    def test_one_that_died_holds_nothing_back_and_is_a_gap(self, connection: Connection) -> None:
        dead, alive = ScriptedProducer(1), ScriptedProducer(2)
        beats(dead, 0, 1)
        beats(alive, 0, 6)
        store(connection, dead, alive)
        assert complete_until(connection, at(4)) == at(1), "3 intervals are not over"
        assert missing(connection, 4) == []
        assert complete_until(connection, at(6)) == at(6)
        (gap,) = missing(connection, 6)
        assert (gap.cause, gap.since, gap.until) == (GapCause.SILENCE, at(1), None)
        assert (gap.producer, gap.run, gap.job, gap.application) == (dead.id, dead.run, "etl", "app-1")

    def test_what_an_administrator_did_says_nothing_of_drivers(self, connection: Connection) -> None:
        """It can go straight into a store that is far behind its bus."""
        driver, administrator = ScriptedProducer(1), ScriptedProducer(2)
        driver.emit(0, Committed, barrier=1)
        administrator.emit(60, LineageDeleted, scope="DATA", before=at(-60))
        store(connection, driver, administrator)
        assert complete_until(connection, at(60)) == at(0)

    def test_one_that_died_before_its_first_heartbeat(self, connection: Connection) -> None:
        dead = ScriptedProducer(1)
        dead.emit(0, JobStarted, job_type="BATCH")
        store(connection, dead)
        assert missing(connection, 3) == []
        (gap,) = missing(connection, 4)
        assert (gap.cause, gap.since, gap.producer) == (GapCause.SILENCE, at(0), dead.id)

    def test_one_that_closed_is_no_gap_and_holds_nothing_back(self, connection: Connection) -> None:
        closed, alive = ScriptedProducer(1), ScriptedProducer(2)
        beats(closed, 0, 1)
        closed.emit(1.5, Closed)
        beats(alive, 0, 20)
        store(connection, closed, alive)
        assert complete_until(connection, at(20)) == at(20)
        assert missing(connection, 20) == []

    def test_a_number_that_never_came_counts_after_ten_minutes(self, connection: Connection) -> None:
        producer = ScriptedProducer(1)
        beats(producer, 0, 2)
        producer.lose(2.5, Committed, barrier=1)
        producer.emit(3, Closed)
        store(connection, producer)
        assert missing(connection, 12) == []
        assert complete_until(connection, at(12)) == at(0), "it may still come: of which time it is, its block says"
        (gap,) = missing(connection, 13)
        assert (gap.cause, gap.family, gap.count, gap.producer) == (GapCause.MISSING_SEQUENCE, "JOB", 1, producer.id)
        assert (gap.since, gap.until) == (at(0), at(3))
        assert complete_until(connection, at(13)) == at(3)

    def test_a_number_that_comes_late_fills_its_hole(self, connection: Connection) -> None:
        producer = ScriptedProducer(1)
        beats(producer, 0, 2)
        late = producer.lose(2.5, Committed, barrier=1)
        producer.emit(3, Closed)
        store(connection, producer, [late])
        assert missing(connection, 30) == []
        assert complete_until(connection, at(30)) == at(3)

    def test_holes_over_blocks_have_the_times_of_what_came_beside_them(self, connection: Connection) -> None:
        producer = ScriptedProducer(1)
        for _ in range(ARRIVALS_PER_ROW - 2):
            producer.emit(1, Committed, barrier=1)
        for _ in range(2 * ARRIVALS_PER_ROW):  # the end of the first, the whole second, the beginning of the third
            producer.lose(2, Committed, barrier=1)
        producer.emit(3, Committed, barrier=1)
        producer.emit(4, Closed)
        store(connection, producer)
        (gap,) = missing(connection, 20)
        assert (gap.count, gap.since, gap.until) == (2 * ARRIVALS_PER_ROW, at(1), at(3))
        assert (
            gap.detail == f"numbers {ARRIVALS_PER_ROW - 1} to {3 * ARRIVALS_PER_ROW - 2} of its JOB events never came"
        )

    def test_full_blocks_are_no_holes(self, connection: Connection) -> None:
        producer = ScriptedProducer(1)
        for _ in range(3 * ARRIVALS_PER_ROW):
            producer.emit(1, Committed, barrier=1)
        producer.emit(4, Closed)
        store(connection, producer)
        assert missing(connection, 20) == []

    def test_a_store_that_heard_a_producer_from_the_middle_on(self, connection: Connection) -> None:
        producer = ScriptedProducer(1)
        for _ in range(ARRIVALS_PER_ROW + 5):
            producer.lose(1, Committed, barrier=1)
        producer.emit(4, Closed)
        store(connection, producer)
        (gap,) = missing(connection, 20)
        assert gap.count == ARRIVALS_PER_ROW + 5

    def test_the_last_of_a_family_is_missed_where_its_producer_closed(self, connection: Connection) -> None:
        producer = ScriptedProducer(1)
        beats(producer, 0, 1)
        producer.lose(1, CreateTable, table=Table(), context=CONTEXT, **named("orders"))
        producer.emit(2, Closed)
        store(connection, producer)
        assert missing(connection, 11) == []
        (gap,) = missing(connection, 13)
        assert (gap.cause, gap.count, gap.until) == (GapCause.MISSING_SEQUENCE, 1, at(2))
        assert missing(connection, 13, since=at(1), until=at(2)) == [gap]
        assert missing(connection, 13, since=at(2.5)) == []

    def test_a_hole_is_found_in_its_time_only(self, connection: Connection) -> None:
        producer = ScriptedProducer(1)
        beats(producer, 0, 2)
        producer.lose(2.5, Committed, barrier=1)
        producer.emit(3, Closed)
        store(connection, producer)
        assert missing(connection, 60, since=at(4)) == []
        assert missing(connection, 60, until=at(-1)) == []
        assert len(missing(connection, 60, since=at(1), until=at(2))) == 1

    def test_a_snapshot_on_one_that_nobody_made(self, connection: Connection) -> None:
        producer = ScriptedProducer(1)
        for barrier, (snapshot, parent) in enumerate([(1, None), (2, 1), (4, 3)]):
            output = Output(**place("daily"), snapshot=snapshot, parent=parent)
            producer.emit(barrier, Committed, barrier=barrier, outputs=(output,))
        producer.emit(3, Closed)
        store(connection, producer)
        assert missing(connection, 5) == []
        (gap,) = missing(connection, 20)
        assert (gap.cause, gap.snapshot, gap.until) == (GapCause.UNKNOWN_PARENT, 3, at(2))
        assert gap.dataset == "s3://lake/w/daily"
        assert missing(connection, 20, since=at(2), until=at(3)) == [gap]
        assert missing(connection, 20, since=at(2.5)) == missing(connection, 20, until=at(1)) == []
        assert missing(connection, 20, datasets=[dataset_hash(dataset("daily"))]) == [gap]
        assert missing(connection, 20, datasets=[dataset_hash(dataset("orders"))]) == []

    def test_a_snapshot_on_one_that_ddl_made(self, connection: Connection) -> None:
        producer = ScriptedProducer(1)
        changed = (SetProperty(key="a", value="b"),)
        producer.emit(0, AlterTable, context=CONTEXT, changes=changed, produced=3, **named("daily"))
        producer.emit(1, Committed, barrier=1, outputs=(Output(**place("daily"), snapshot=4, parent=3),))
        producer.emit(3, Closed)
        store(connection, producer)
        assert missing(connection, 20) == []

    def test_ids_of_another_generation_are_others(self, connection: Connection) -> None:
        producer = ScriptedProducer(1)
        producer.emit(1, Committed, barrier=1, outputs=(Output(**place("daily"), snapshot=1),))
        again = Output(**place("daily", generation="2"), snapshot=2, parent=1)
        producer.emit(2, Committed, barrier=2, outputs=(again,))
        producer.emit(3, Closed)
        store(connection, producer)
        (gap,) = missing(connection, 20)
        assert (gap.cause, gap.generation, gap.snapshot) == (GapCause.UNKNOWN_PARENT, "2", 1)

    def test_a_stream_that_went_on_elsewhere(self, connection: Connection) -> None:
        producer = ScriptedProducer(1, "stream")
        for batch, (since, until) in enumerate([(None, 4), (4, 6), (7, 9), (9, 9)]):
            producer.emit(batch, Committed, incarnation=UUID(int=5), **batched(batch, (since, until)))
        producer.emit(4, Closed)
        store(connection, producer)
        (gap,) = missing(connection, 20)
        assert (gap.cause, gap.since, gap.until, gap.job) == (GapCause.STREAM, at(1), at(2), "stream")
        assert gap.detail == "it stopped reading at 6 and went on behind 7"
        assert missing(connection, 20, job=JobName(name="stream")) == [gap]
        assert missing(connection, 20, job=JobName(name="other")) == []
        assert missing(connection, 20, since=at(3)) == []

    @pytest.mark.parametrize("hidden", [(6, True), (9, True), (4, False)])
    def test_a_stream_whose_reads_arent_shown_has_no_break(
        self, connection: Connection, hidden: tuple[int, bool]
    ) -> None:
        """Up to 6 the read before the break is hidden, up to 9 both. Fails if a gap names what a deletion hides."""
        up_to, is_whole = hidden
        producer = ScriptedProducer(1, "stream")
        for batch, (since, until) in enumerate([(None, 4), (4, 6), (7, 9), (9, 9)]):
            producer.emit(batch, Committed, incarnation=UUID(int=5), **batched(batch, (since, until)))
        producer.emit(4, Closed)
        about: dict[str, Any] = {"dataset": dataset("orders"), "up_to_snapshot": up_to}
        store(connection, producer, administration(LineageDeleted, scope="DATA", before=at(9), **about))
        assert [each.cause for each in missing(connection, 20)] == ([] if is_whole else [GapCause.STREAM])

    def test_reads_on_both_sides_of_a_hidden_one_break_nothing(self, connection: Connection) -> None:
        producer = ScriptedProducer(1, "stream")
        for batch, ends in enumerate([(None, 4), (4, 6), (6, 9)]):
            more = {"run": UUID(int=77)} if batch == 1 else {}
            producer.emit(batch, Committed, incarnation=UUID(int=5), **batched(batch, ends), **more)
        producer.emit(4, Closed)
        deleted = administration(LineageDeleted, scope="ALL", of_run=UUID(int=77), before=at(9))
        store(connection, producer, deleted)
        assert missing(connection, 20) == []

    def test_a_snapshot_that_isnt_shown_lacks_no_parent(self, connection: Connection) -> None:
        producer = ScriptedProducer(1)
        for barrier, (snapshot, parent) in enumerate([(1, None), (4, 3), (5, 4)]):
            output = Output(**place("daily"), snapshot=snapshot, parent=parent)
            producer.emit(barrier, Committed, barrier=barrier, outputs=(output,))
        producer.emit(3, Closed)
        context = CatalogContext(name="lake", class_name="org.example.Catalog")
        store(connection, producer)
        assert [each.snapshot for each in missing(connection, 20)] == [3]
        store(connection, administration(CatalogOptionsDeclared, context=context, data_lineage=False))
        assert [each.snapshot for each in missing(connection, 20) if each.cause is GapCause.UNKNOWN_PARENT] == []

    def test_a_stream_that_reads_a_table_twice(self, connection: Connection) -> None:
        producer = ScriptedProducer(1, "stream")
        for batch, ranges in enumerate([((1, 4), (1, 2)), ((4, 6), (2, 3)), ((6, 7), (3, 7))]):
            producer.emit(batch, Committed, incarnation=UUID(int=5), **batched(batch, *ranges))
        producer.emit(4, Closed)
        store(connection, producer)
        assert missing(connection, 20) == []

    def test_another_checkpoint_begins_anew(self, connection: Connection) -> None:
        producer = ScriptedProducer(1, "stream")
        producer.emit(0, Committed, incarnation=UUID(int=5), **batched(0, (1, 4)))
        producer.emit(1, Committed, incarnation=UUID(int=6), **batched(0, (2, 9)))
        producer.emit(4, Closed)
        store(connection, producer)
        assert missing(connection, 20) == []

    def test_what_was_reported(self, connection: Connection) -> None:
        producer = ScriptedProducer(1)
        bounds = {"first_time": at(-5), "last_time": at(-1), "missed": 7, "missed_family": "JOB"}
        producer.emit(0, Gap, reason="SPOOL_LIMIT", detail="the disk was full", **bounds)
        producer.emit(0, Gap, reason="NOT_EXACT", source=Source(**place("orders")), run=None)
        producer.emit(0, Closed)
        store(connection, producer)
        full, inexact = missing(connection, 1)
        assert (full.cause, full.reason, full.detail) == (GapCause.REPORTED, "SPOOL_LIMIT", "the disk was full")
        assert (full.since, full.until, full.count, full.family) == (at(-5), at(-1), 7, "JOB")
        assert (inexact.detail, inexact.dataset, inexact.since) == ("not exact", "s3://lake/w/orders", at(0))
        assert missing(connection, 1, datasets=[dataset_hash(dataset("orders"))]) == [inexact]
        assert missing(connection, 1, until=at(-3)) == [full]

    def test_of_a_table_only_what_its_applications_missed(self, connection: Connection) -> None:
        for number, table in enumerate(["orders", "daily"], 1):
            producer = ScriptedProducer(number, f"job {number}")
            producer.emit(0, JobStarted, job_type="BATCH")
            producer.emit(0, Committed, barrier=1, inputs=(Input(**place(table), snapshot=1),))
            beats(producer, 0, 1)
            store(connection, producer)
        assert len(missing(connection, 20)) == 2
        (gap,) = missing(connection, 20, datasets=[dataset_hash(dataset("daily"))])
        assert gap.application == "app-2"
        (gap,) = missing(connection, 20, job=JobName(name="job 1"))
        assert gap.application == "app-1"

    @pytest.mark.parametrize("at_most", [1, 2])
    def test_no_more_than_was_asked_for(self, connection: Connection, at_most: int) -> None:
        for number in (1, 2):
            producer = ScriptedProducer(number)
            beats(producer, 0, 1)
            store(connection, producer)
        answer = gaps(connection, at_most=at_most, now=at(20))
        assert (len(answer), answer.is_partial) == (at_most, at_most < 2)

    def test_administration_is_counted_too(self, connection: Connection) -> None:
        producer = ScriptedProducer(1)
        for _ in range(2):
            producer.lose(0, DatasetsUnified, dataset=dataset("a"), others=(dataset("b"),))
        producer.emit(1, DatasetsUnified, dataset=dataset("a"), others=(dataset("b"),))
        store(connection, producer)
        (gap,) = missing(connection, 20)
        assert (gap.family, gap.count) == ("ADMIN", 2)


def named(table: str) -> dict[str, object]:
    names = place(table)
    return {"identifier": names.pop("table"), **names}


def batched(batch: int, *ranges: tuple[int | None, int]) -> dict[str, object]:
    inputs = tuple(
        Input(
            **place("orders"),
            mode=ReadMode.CHANGES,
            since=RangeStart(snapshot=since) if since else None,
            snapshot=until,
        )
        for since, until in ranges
    )
    return {"barrier": 1000 + batch, "batch_id": batch, "inputs": inputs}


class TestCatalogOptions:
    """Two drivers declare one catalog otherwise: neither can know that, so only the store can tell."""

    @staticmethod
    def declare(minute: float, number: int, *, data: bool, table: bool = True) -> ScriptedProducer:
        producer = ScriptedProducer(number, f"app-{number}")
        producer.emit(minute, CatalogOptionsDeclared, context=CONTEXT, data_lineage=data, table_lineage=table)
        producer.emit(minute, Committed, barrier=number, outputs=(Output(**place("orders"), snapshot=number),))
        producer.emit(minute, Closed)
        return producer

    def test_the_first_declaration_holds_whichever_came_first(self, connection: Connection) -> None:
        for each in (self.declare(5, 2, data=True), self.declare(1, 1, data=False), self.declare(6, 3, data=True)):
            store(connection, each)
        (gap,) = missing(connection, 20)
        assert (gap.cause, gap.reason) == (GapCause.OPTION, "CATALOG_OPTION")
        assert (gap.since, gap.until) == (at(5), at(6))
        assert gap.detail == (
            f"catalog {CONTEXT.name}: a driver has data-lineage=true, and false was declared first, which holds"
        )

    def test_it_concerns_the_tables_and_jobs_of_that_catalog(self, connection: Connection) -> None:
        for each in (self.declare(1, 1, data=True), self.declare(5, 2, data=False)):
            store(connection, each)
        other = ScriptedProducer(9, "other")
        elsewhere = {"dataset": dataset("x"), "table": TableName(catalog="elsewhere", database="db", table="x")}
        other.emit(6, Committed, barrier=9, outputs=(Output(**elsewhere, snapshot=1),))
        other.emit(6, Closed)
        store(connection, other)
        assert len(missing(connection, 20, datasets=[dataset_hash(dataset("orders"))])) == 1
        assert missing(connection, 20, datasets=[dataset_hash(dataset("x"))]) == []
        assert len(missing(connection, 20, job=JobName(name="app-1"))) == 1
        assert missing(connection, 20, job=JobName(name="other")) == []
        assert missing(connection, 20, until=at(4)) == []

    def test_drivers_that_agree_make_no_gap(self, connection: Connection) -> None:
        for each in (self.declare(1, 1, data=False), self.declare(5, 2, data=False)):
            store(connection, each)
        assert missing(connection, 20) == []
