"""What a lake of every table format does: the rows of the law, upkeep without loss, the answers of a database."""

from __future__ import annotations

import random
from datetime import datetime, timezone
from pathlib import Path

import pytest

from headwater.consumers.spark.pipeline import PipelineOptions, run_pipeline
from headwater.consumers.spark.pipeline.lake import LakeTables
from headwater.consumers.spark.pipeline.lake.meta import LakeBulkMeta
from headwater.errors import ConfigurationError, HeadwaterError
from headwater.events.avro import Codec
from headwater.lineage.client import Lineage
from headwater.lineage.lake.formats import format_of
from headwater.lineage.mapping import map_event
from headwater.lineage.rows import KINDS, Row, RowSet
from headwater.lineage.rows.tables import COMMIT
from headwater.lineage.sql import store_digest
from headwater.lineage.sql.errors import StoreSchemaError
from headwater.lineage.sql.tables import column_names
from headwater.lineage.store import open_store
from headwater.testing.examples import EXAMPLES
from tests.kit.events.mixture import events
from tests.kit.events.written import digest_by_law
from tests.kit.lake.logs import BAD, EVERYTHING, appended, write_log
from tests.kit.lake.sessions import Lakes, digest_by_spark, lake_of, merge, values_of
from tests.kit.lineage.all_stories import STORIES
from tests.kit.lineage.stories import ask, producer_of

CODEC = Codec()


class LakeReadingContract:
    """How a session of Spark is asked."""

    def test_an_answer_sees_each_table_as_it_was_when_it_first_used_it(self, lake_session: Lakes) -> None:
        lake = lake_of(lake_session, *KINDS[:1], COMMIT)
        rows = [row for each in events(8, shapes=2) for row in map_event(each) if row.kind == COMMIT]
        merge(lake, rows[:2])
        with Lineage.open(lake.address.words, spark=lake_session.spark) as lineage:
            with lineage.store.engine.connect() as connection:
                count = f"SELECT count(*) FROM `headwater table {COMMIT.name}`"
                held = connection.exec_driver_sql(count).scalar()
                merge(lake, rows)
                assert connection.exec_driver_sql(count).scalar() == held
            with lineage.store.engine.connect() as connection:
                assert connection.exec_driver_sql(count).scalar() == len(list(lake.rows(COMMIT.name))) > (held or 0)

    def test_a_lake_that_is_not_there_is_said(self, lake_session: Lakes) -> None:
        with pytest.raises(StoreSchemaError, match="there is no lake store in"):
            Lineage.open(lake_session.address().words, spark=lake_session.spark)


class LakeContract(LakeReadingContract):
    """Tests of one format. A subclass says how many versions and files its tables have, by the format's own words."""

    def versions(self, lake: LakeTables, name: str) -> int:
        raise NotImplementedError

    def files(self, lake: LakeTables, name: str) -> int:
        raise NotImplementedError

    def expiry(self, session: Lakes) -> None:
        """Let files be removed that somebody may have needed a moment ago."""

    @pytest.mark.timeout(900)  # some 60 MERGEs
    @pytest.mark.parametrize("seed", [5])
    def test_rows_of_all_kinds_in_any_order_and_portions_and_again(self, lake_session: Lakes, seed: int) -> None:
        lake = LakeTables.open(lake_session.spark, lake_session.address(), 30)
        state, chance = RowSet(), random.Random(seed)
        shuffled = [*EXAMPLES, *EXAMPLES[::2]]
        chance.shuffle(shuffled)
        for each in EXAMPLES:
            state.merge(map_event(each))
        cut = chance.randrange(1, len(shuffled))
        for some in (shuffled[:cut], shuffled[cut:]):
            merge(lake, [row for each in some for row in map_event(each)])
        assert digest_by_spark(lake) == state.digest()
        before = {name: self.versions(lake, name) for name in lake.counts()}
        merge(lake, state.rows())
        after = {name: self.versions(lake, name) for name in lake.counts()}
        assert before == after, "rows that say nothing new aren't written"
        with (
            Lineage.open(lake.address.words, spark=lake_session.spark) as read,
            read.store.engine.connect() as connection,
        ):
            assert store_digest(connection) == state.digest(), "by the dialect of questions"

    def test_a_driver_that_dies_between_tables_leaves_the_rest_to_the_next(
        self, lake_session: Lakes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It dies when some tables are merged and others aren't, so offsets aren't either."""
        address, merge_table, left = lake_session.address(), LakeTables.merge, [6]
        log = write_log(tmp_path / "log", EVERYTHING)

        def dying(tables: LakeTables, *arguments: object) -> int:
            left[0] -= 1
            if left[0] < 0:
                raise ConfigurationError("the driver dies here")
            return merge_table(tables, *arguments)  # type: ignore[arg-type]  # as they came

        options = PipelineOptions(address, log=tmp_path / "log", group="g", buckets=2)
        with monkeypatch.context() as patched:
            patched.setattr(LakeTables, "merge", dying)
            with pytest.raises(HeadwaterError, match="the driver dies here"):
                run_pipeline(lake_session.spark, options)
        lake = LakeTables(lake_session.spark, address)
        filled = [name for name, count in lake.counts().items() if count]
        assert 0 < len(filled) <= 6
        assert not LakeBulkMeta(lake).offsets("g")
        figures = run_pipeline(lake_session.spark, options)
        assert (figures.events, figures.dead_letters) == (len(EVERYTHING), len(BAD))
        assert digest_by_spark(lake) == digest_by_law(appended(log))
        assert lake.counts()["dead_letters"] == len(BAD)
        assert sum(LakeBulkMeta(lake).offsets("g").values()) == len(EVERYTHING)
        assert run_pipeline(lake_session.spark, options).events == 0

    def test_compaction_and_expiry_leave_the_rows_and_take_the_files(self, lake_session: Lakes) -> None:
        lake = lake_of(lake_session, COMMIT)
        state, emitted = RowSet(), list(events(60, shapes=5))
        for some in (emitted[:20], emitted[20:40], emitted[40:]):
            rows = [row for each in some for row in map_event(each) if row.kind == COMMIT]
            state.merge(rows)
            merge(lake, rows)
        before, address, of = self.files(lake, COMMIT.name), lake.address, format_of(lake.address)
        assert before >= 2
        assert of.compact(lake.spark, address, COMMIT.name, COMMIT.partition, before + 1) == 0, "it has fewer files"
        assert of.compact(lake.spark, address, COMMIT.name, COMMIT.partition, 2) == before
        assert self.files(lake, COMMIT.name) == 1
        self.expiry(lake_session)
        assert of.expire(lake.spark, address, COMMIT.name, datetime.now(timezone.utc), 1) > 0
        kept = RowSet()
        names = column_names(COMMIT)
        kept.merge(Row(COMMIT, tuple(values_of(each, names))) for each in lake.rows(COMMIT.name))
        assert kept.digest() == state.digest()

    def test_questions_have_the_answers_of_a_database(self, lake_session: Lakes, tmp_path: Path) -> None:
        """Merged in two portions, of which the second has all events again."""
        (story,) = [each for each in STORIES if each.name == "diamond"]
        producer = producer_of(story)
        rows = [row for each in producer.events for row in map_event(each)]
        lake = LakeTables.open(lake_session.spark, lake_session.address(), 30)
        merge(lake, rows[: len(rows) // 2])
        merge(lake, rows)
        with Lineage.open(lake.address.words, spark=lake_session.spark) as lineage:
            with lineage.store.engine.connect() as connection:
                answers = {check.question: ask(connection, check.question) for check in producer.checks[:3]}
            assert answers == {check.question: (check.rows, check.whys) for check in producer.checks[:3]}
            with open_store(f"sqlite:///{tmp_path}/s.db") as store:
                store.merge(rows)
                assert lineage.find("lake.db.d") == Lineage(store).find("lake.db.d")
