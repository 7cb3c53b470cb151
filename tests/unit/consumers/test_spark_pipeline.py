"""Parts of the pipeline on Spark that need no Spark: records, shares, buckets, settings."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pytest

from headwater.config.spark_submit import java_on_standard_error
from headwater.consumers.sources import BusRecord, OffsetGap, SourceBatch
from headwater.consumers.spark import MissingSparkError
from headwater.consumers.spark.pipeline import PipelineOptions
from headwater.consumers.spark.pipeline import session as session_module
from headwater.consumers.spark.pipeline.jobs import translate_job_error
from headwater.consumers.spark.pipeline.reading_tasks import BusReading, reading_task
from headwater.consumers.spark.pipeline.records import records_to_arrow
from headwater.consumers.spark.pipeline.shares import MergedShares, Share
from headwater.errors import ConfigurationError, TerminalError, TransientError
from headwater.events.avro import Codec
from headwater.events.envelope import Event
from headwater.events.health import GapReason
from headwater.lineage.bulk import BusPartition, DeadLetter
from headwater.lineage.mapping import map_event
from headwater.lineage.rows import Row, RowSet
from headwater.lineage.rows.tables import TOMBSTONE
from headwater.lineage.store.options import StoreOptions
from headwater.testing.examples import EXAMPLES
from tests.kit.seeds import seed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CODEC = Codec()
DATA = [CODEC.encode(each) for each in EXAMPLES]
STORE = StoreOptions.at("postgresql://db/lineage")


def arrow(data: list[bytes | None], number: int = 0, first: int = 0) -> pa.RecordBatch:
    where, time = BusPartition("c", "t", number), 1_790_000_000_000_000
    rows: list[Any] = [(each, where, first + at, time + at, b"k", (("a", b"b"),)) for at, each in enumerate(data)]
    return records_to_arrow(SourceBatch(tuple(BusRecord(*each) for each in rows)), first + len(data))


def shares(batches: list[pa.RecordBatch], keys: list[int]) -> Iterator[tuple[int, Share, int]]:
    bus = BusReading("kafka", "c", "t", "topic", 100)
    for found in reading_task(bus, keys)(iter(batches)):
        for key, data in zip(found.column(0).to_pylist(), found.column(1).to_pylist(), strict=True):
            yield key, Share.unpack(data), len(data)


def by_law(data: list[bytes]) -> str:
    state = RowSet()
    for each in data:
        event = CODEC.decode(each)
        assert isinstance(event, Event)
        state.merge(map_event(event, 1_790_000_000_000_000))
    return state.digest()


@pytest.mark.parametrize("round_", range(3))
def test_tasks_in_any_number_and_order_make_the_rows_of_the_law(round_: int) -> None:
    """Partitions, duplicates, the size of batches, the order in which shares come: all by chance."""
    chance = random.Random(seed() + round_)
    data = [*DATA, *chance.choices(DATA, k=60)]
    chance.shuffle(data)
    keys = chance.sample(range(100), chance.randrange(1, 6))
    found: list[tuple[int, Share, int]] = []
    while data:
        count = chance.randrange(1, 60)
        some, data = data[:count], data[count:]
        batches = [arrow([each]) for each in some]  # each at the same offset, and so at the same time
        found += shares(batches, keys)
    chance.shuffle(found)
    merged = {key: MergedShares() for key in keys}
    for key, share, size in found:
        merged[key].add(share, size)
    state, ids = RowSet(), list[bytes]()
    for each in merged.values():
        rows = [Row(some.kind, values) for some in each.rows for values in some.rows] + each.tombstones
        ids += {row.id for row in rows}
        state.merge(rows)
    assert state.digest() == by_law(DATA)
    assert len(ids) == len(set(ids)), "two buckets have one row"
    assert all(row.kind == TOMBSTONE for row in merged[keys[0]].tombstones)
    assert not any(each.tombstones for key, each in merged.items() if key != keys[0])


def test_what_is_no_event_is_a_dead_letter_with_its_key_and_headers() -> None:
    ((_, share, _),) = [each for each in shares([arrow([DATA[0], b"no event", None], 3, 70)], [2]) if each[1].letters]
    letters: list[DeadLetter] = list(share.letters)
    assert [(each.position, each.data, each.key, each.headers) for each in letters] == [
        (71, b"no event", b"k", (("a", b"b"),)),
        (72, b"", b"k", (("a", b"b"),)),
    ]
    assert {each.partition for each in letters} == {BusPartition("c", "t", 3)}
    assert share.reached[3] == (3, 70, 72, 1_790_000_000_000_002)


def test_what_a_log_lost_is_no_record() -> None:
    """Of a gap that goes on behind a part, each part has its own piece."""
    where = BusPartition("c", "t", 0)
    gaps = (OffsetGap(where, 5, 9, GapReason.LOG_EXPIRED), OffsetGap(where, 10, 40, GapReason.CORRUPTION))
    lost = records_to_arrow(SourceBatch((BusRecord(DATA[0], where, 9, 7),), {}, gaps), 20)
    ((_, share, _), *_) = [each for each in shares([lost], [0]) if each[1].gaps]
    found = [(each.first, each.end, each.reason) for each in share.gaps]
    assert found == [(5, 9, GapReason.LOG_EXPIRED), (10, 20, GapReason.CORRUPTION)]
    assert share.reached[0].events == 1


class TestOptions:
    @pytest.mark.parametrize(
        ("given", "words"),
        [
            ({}, "where are the events"),
            ({"kafka": {"bootstrap.servers": "b:1", "group.id": "x"}}, "group.id can't be set"),
            ({"kafka": {"bootstrap.servers": "b:1"}, "buckets": 0}, "buckets are from 1"),
            ({"kafka": {"bootstrap.servers": "b:1"}, "most_records": 0}, "1 event or more"),
        ],
    )
    def test_what_is_wrong_is_said_with_what_to_do(self, given: dict[str, Any], words: str) -> None:
        with pytest.raises(ConfigurationError, match=words):
            PipelineOptions(STORE, **given).checked()

    @pytest.mark.parametrize(
        ("master", "buckets", "words"),
        [("spark://m:7077", None, "executors of spark://m:7077 are on others"), ("local[4]", 2, "leave out --buckets")],
    )
    def test_sqlite_is_for_one_machine_and_one_task(self, master: str, buckets: int | None, words: str) -> None:
        options = PipelineOptions(StoreOptions.at("sqlite:///x.db"), buckets=buckets)
        with pytest.raises(ConfigurationError, match=words):
            options.buckets_for(session(master))

    def test_as_many_tasks_write_as_there_are_cores(self) -> None:
        assert PipelineOptions(STORE).buckets_for(session("local[4]")) == 4
        assert PipelineOptions(STORE, buckets=3).buckets_for(session("yarn")) == 3
        assert PipelineOptions(StoreOptions.at("sqlite:///x.db")).buckets_for(session("local[4]")) == 1


def test_without_arrow_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "find_spec", lambda name: None if name == "pyarrow" else object())
    with pytest.raises(MissingSparkError, match="by pyarrow, which this Python lacks: pip install"):
        session_module.require_arrow()


@pytest.mark.parametrize(
    ("words", "kind", "message"),
    [
        (
            "Python:\nheadwater.lineage.sql.errors.StoreUnreachableError: postgresql://db: it doesn't answer\n\n\tat",
            TransientError,
            "postgresql://db: it doesn't answer",
        ),
        (
            "headwater.consumers.writer.record_reader.MappingFailedError: 100 events in a row",
            TerminalError,
            "100 events in a row",
        ),
        ("headwater.errors.advise_import: no error", TransientError, "Spark gave a micro-batch up"),
        ("ExecutorLostFailure", TransientError, "Spark gave a micro-batch up"),
    ],
)
def test_what_a_task_raised_is_raised_by_the_driver(words: str, kind: type[Exception], message: str) -> None:
    found = translate_job_error(RuntimeError(words))
    assert type(found) is kind
    assert str(found).startswith(message)


def session(master: str) -> Any:
    class Context:
        defaultParallelism = 4  # noqa: N815 - Spark's name

    Context.master = master  # type: ignore[attr-defined]
    return type("Session", (), {"sparkContext": Context})


@pytest.mark.parametrize(
    ("conf", "is_warned"),
    [
        ({"spark.headwater.listeners": "log"}, True),
        ({"spark.headwater.listeners": "log", "spark.headwater.enabled": "true"}, False),
        ({"spark.headwater.listeners": "log", "spark.headwater.enabled": "false"}, False),
        ({}, False),
    ],
)
def test_listeners_of_a_session_that_nobody_watches_are_reported(
    conf: dict[str, str], is_warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    session_module._warn_if_unwatched(cast("SparkSession", SimpleNamespace(conf=conf)))
    assert ("set spark.headwater.enabled to true" in caplog.text) is is_warned


def test_java_writes_where_answers_are_not(capfd: pytest.CaptureFixture[str]) -> None:
    with java_on_standard_error():
        subprocess.run([sys.executable, "-c", "print('loading')"], check=True)
    subprocess.run([sys.executable, "-c", "print('answer')"], check=True)
    assert capfd.readouterr() == ("answer\n", "loading\n")
