"""A lake store has the rows of the writer, whatever the order and whatever is repeated, and answers the same."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from headwater.consumers.replay.filling import ends_until
from headwater.consumers.replay.ranges import LogRange
from headwater.consumers.spark.pipeline import PipelineOptions, run_pipeline
from headwater.consumers.spark.pipeline.batch_writer import BatchSettings, OrderedBatches
from headwater.consumers.spark.pipeline.lake import LakeTables, compact, expire
from headwater.consumers.spark.pipeline.lake.meta import LakeBulkMeta
from headwater.consumers.spark.pipeline.lake.writer import LakeBatchWriter
from headwater.consumers.spark.pipeline.polled_batches import SparkRangeReader
from headwater.errors import ConfigurationError, HeadwaterError
from headwater.lineage.client import Lineage
from headwater.lineage.lake import LakeAddress
from headwater.lineage.lake.reading import open_lake
from headwater.lineage.mapping import map_event
from headwater.lineage.rows import RowKind, RowSet
from headwater.lineage.rows.tables import COMMIT, DATASET, JOB
from headwater.lineage.sql import store_digest
from headwater.lineage.sql.errors import StoreSchemaError
from headwater.lineage.store import open_store
from headwater.testing.examples import EXAMPLES
from tests.kit.events.mixture import events
from tests.kit.events.written import digest_by_law
from tests.kit.lake.contract import LakeReadingContract
from tests.kit.lake.logs import BAD, EVERYTHING, appended, write_log
from tests.kit.lake.race import check_that_one_of_two_merges_is_refused
from tests.kit.lake.sessions import Lakes, digest_by_spark, lake_of, lakes, merge
from tests.kit.lineage.all_stories import STORIES
from tests.kit.lineage.stories import ask, producer_of

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.needs("iceberg"),
    pytest.mark.xdist_group("lake"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    # Spark 3.5 compares the versions of pandas so
    pytest.mark.filterwarnings("ignore:distutils Version classes are deprecated:DeprecationWarning"),
]


@pytest.fixture(scope="module")
def lake_session(java_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lakes]:
    with lakes(java_home, tmp_path_factory.mktemp("lake")) as session:
        yield session


def options(address: LakeAddress, log: Path, **more: Any) -> PipelineOptions:
    return PipelineOptions(address, log=log, group="g", **more)


@pytest.mark.long
def test_a_replay_fills_a_lake_portion_by_portion(lake_session: Lakes, tmp_path: Path) -> None:
    log = write_log(tmp_path / "log", EVERYTHING)
    tables = LakeTables.open(lake_session.spark, lake_session.address())
    lake = LakeBulkMeta(tables)
    settings = BatchSettings("g", 2, 70)
    make_writer = partial(LakeBatchWriter, lake, 60.0)
    reader = SparkRangeReader(lake_session.spark, lake, make_writer, settings, kafka=lambda _: {}, most_invalid=100)
    source, seen = LogRange("log:x", log.directory, dict), list[int]()
    assert reader.read(source, ends_until(source, None), seen.append) == len(EVERYTHING)
    assert len(seen) > 1
    assert digest_by_spark(tables) == digest_by_law(appended(log))
    assert sum(lake.offsets("g").values()) == len(EVERYTHING)
    assert reader.read(source, ends_until(source, None), seen.append) == 0


@pytest.mark.long
def test_a_pipeline_ends_in_the_rows_of_the_law_and_a_crash_before_offsets_changes_nothing(
    lake_session: Lakes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver dies when all tables are merged and offsets aren't; the next one reads the same records again."""
    address = lake_session.address()
    log = write_log(tmp_path / "log", EVERYTHING)
    complete, crashed = vars(OrderedBatches)["_complete"], list[bool]()

    def crash(writer: OrderedBatches, *arguments: Any) -> None:
        if not crashed:
            crashed.append(True)
            raise ConfigurationError("the driver dies here")
        complete(writer, *arguments)

    monkeypatch.setattr(OrderedBatches, "_complete", crash)
    with pytest.raises(HeadwaterError, match="the driver dies here"):
        run_pipeline(lake_session.spark, options(address, tmp_path / "log", buckets=2))
    lake = LakeTables(lake_session.spark, address)
    assert lake.counts()[COMMIT.name] > 0
    assert not LakeBulkMeta(lake).offsets("g")
    figures = run_pipeline(lake_session.spark, options(address, tmp_path / "log", buckets=2))
    assert (figures.events, figures.dead_letters) == (len(EVERYTHING), len(BAD))
    law = digest_by_law(appended(log))
    assert digest_by_spark(lake) == law
    assert lake.counts()["dead_letters"] == len(BAD)
    assert sum(LakeBulkMeta(lake).offsets("g").values()) == len(EVERYTHING)
    assert run_pipeline(lake_session.spark, options(address, tmp_path / "log", buckets=2)).events == 0
    with open_lake(address, lake_session.properties()) as read, read.engine.connect() as connection:
        assert store_digest(connection) == law
        assert {letter.data for _, letter in read.bulk.dead_letters()} == {*BAD}


@pytest.mark.long
def test_rows_of_all_kinds_in_any_order_and_portions_and_again(lake_session: Lakes) -> None:
    lake = LakeTables.open(lake_session.spark, lake_session.address(), 30)
    state = RowSet()
    shuffled = [*EXAMPLES, *EXAMPLES[::2]]
    random.Random(5).shuffle(shuffled)
    for each in EXAMPLES:
        state.merge(map_event(each))
    for some in (shuffled[:20], shuffled[20:]):
        merge(lake, [row for each in some for row in map_event(each)])
    assert digest_by_spark(lake) == state.digest()
    before = snapshots(lake)
    merge(lake, state.rows())
    assert digest_by_spark(lake) == state.digest()
    assert snapshots(lake) == before, "rows that say nothing new aren't written"


def snapshots(lake: LakeTables) -> dict[str, int]:
    """How many snapshots each table has, by Iceberg's own metadata."""
    return {
        name: lake.spark.sql(f"SELECT count(*) AS n FROM {lake.address.table(name)}.snapshots").collect()[0].n
        for name in lake.counts()
    }


@pytest.mark.parametrize("kind", [DATASET, pytest.param(COMMIT, marks=pytest.mark.long)], ids=lambda kind: kind.name)
def test_of_two_merges_that_add_the_same_rows_one_is_refused(
    lake_session: Lakes, tmp_path: Path, kind: RowKind
) -> None:
    """A MERGE that Iceberg plans as a plain append isn't refused."""
    check_that_one_of_two_merges_is_refused(lake_of(lake_session, kind), kind, tmp_path)


@pytest.mark.long
def test_compaction_and_expiry_leave_the_rows_and_take_the_files(lake_session: Lakes) -> None:
    lake = LakeTables.open(lake_session.spark, lake_session.address(), 30)
    state = RowSet()
    emitted = list(events(60, shapes=5))
    for some in (emitted[:20], emitted[20:40], emitted[40:]):
        rows = [row for each in some for row in map_event(each) if row.kind == COMMIT]
        state.merge(rows)
        merge(lake, rows)
    before = files(lake, COMMIT.name)
    assert before >= 3
    assert compact(lake, smallest=2)[COMMIT.name] == before
    assert files(lake, COMMIT.name) == 1
    assert expire(lake, datetime.now(timezone.utc))[COMMIT.name] == before
    assert snapshots(lake)[COMMIT.name] == 1
    assert digest_by_spark(lake) == state.digest()


def files(lake: LakeTables, name: str) -> int:
    """How many data files a table has now, by Iceberg's own metadata."""
    return int(lake.spark.sql(f"SELECT count(*) AS n FROM {lake.address.table(name)}.files").collect()[0].n)


@pytest.mark.long
def test_questions_have_the_answers_found_by_hand(lake_session: Lakes) -> None:
    """Stories use the same table names, so each has a lake; tests/unit/lineage/test_lake_questions.py has them all."""
    for story in [each for each in STORIES if each.name == "diamond"]:
        producer = producer_of(story)
        lake = LakeTables.open(lake_session.spark, lake_session.address(), 30)
        merge(lake, [row for each in producer.events for row in map_event(each)])
        with open_lake(lake.address, lake_session.properties()) as store, store.engine.connect() as connection:
            answers = {check.question: ask(connection, check.question) for check in producer.checks}
            assert Lineage(store).find("lake.db.d").dataset.label == "lake.db.d"
        assert answers == {check.question: (check.rows, check.whys) for check in producer.checks}


@pytest.mark.long
def test_deleted_rows_of_merge_on_read_are_not_read(lake_session: Lakes) -> None:
    """Somebody has set merge-on-read: then files have rows that aren't there any more."""
    lake = LakeTables.open(lake_session.spark, lake_session.address(), 30)
    for name in (JOB.name, DATASET.name):
        lake.spark.sql(f"ALTER TABLE {lake.address.table(name)} SET TBLPROPERTIES ('write.merge.mode'='merge-on-read')")
    state = RowSet()
    for some in (EXAMPLES[::2], EXAMPLES):
        rows = [row for each in some for row in map_event(each) if row.kind in {JOB, DATASET}]
        state.merge(rows)
        merge(lake, rows)
    with open_lake(lake.address, lake_session.properties()) as store, store.engine.connect() as connection:
        assert store_digest(connection) == state.digest()


def test_what_a_lake_cannot_do_is_said_with_what_to_do(lake_session: Lakes, tmp_path: Path) -> None:
    address = LakeAddress.parse("iceberg:lake.nothing_here")
    with pytest.raises(StoreSchemaError, match=r"no lake store in iceberg:lake\.nothing_here yet"):
        open_lake(address, lake_session.properties())
    with pytest.raises(ConfigurationError, match=r"spark\.sql\.catalog\.elsewhere isn't set"):
        LakeTables.open(lake_session.spark, LakeAddress.parse("iceberg:elsewhere.lineage"))
    with pytest.raises(ConfigurationError, match="Spark alone writes"):
        open_store("iceberg:lake.lineage")
    with pytest.raises(ConfigurationError, match="paimon isn't supported"):
        open_store("paimon:lake.lineage", readonly=True)


@pytest.mark.long
class TestBySpark(LakeReadingContract):
    """Iceberg tables in Spark's SQL."""
