"""Spark's own reading of events, beside the codec's: through a real Spark driver, all kinds of messages in one set."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from headwater.consumers.spark import classify, events
from headwater.errors import ConfigurationError
from headwater.events.avro import Codec, DecodeError, Problem, SchemaCache, UnknownEvent, current_schema, released
from headwater.events.avro.framing import HEADER_BYTES
from headwater.events.base import FrozenMap, Model
from headwater.events.envelope import Event
from headwater.events.kinds import KINDS
from headwater.events.scalars import EventEnum, Format
from headwater.testing.examples import EXAMPLES
from tests.kit.spark import messages as m
from tests.kit.spark.session import avro_package, spark_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

# pyspark leaves the sockets that it collects rows by to the garbage collector.
pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.sample(8),
]
EVERYTHING: dict[str, bytes | None] = {
    **m.EVENTS,
    **m.VERSIONS,
    **m.FUTURE,
    **{name: value for name, (value, _) in m.BAD.items()},
}
ADDED = [m.OLD.text, m.NEW.text, m.REBALANCED.text]


@pytest.fixture(scope="module")
def spark(java_home: Path) -> Iterator[SparkSession]:
    zone = pytest.MonkeyPatch()
    zone.setenv("TZ", "UTC")  # rows have local times, which some zones have twice
    time.tzset()
    with spark_session(java_home) as session:
        yield session
    zone.undo()
    time.tzset()


@pytest.fixture(scope="module")
def topic(spark: SparkSession) -> DataFrame:
    return messages(spark, EVERYTHING)


def messages(spark: SparkSession, values: dict[str, bytes | None]) -> DataFrame:
    """A frame with the columns of Spark's Kafka source, as far as they matter."""
    rows = [(name, n, None if value is None else bytearray(value)) for n, (name, value) in enumerate(values.items())]
    return spark.createDataFrame(rows, "key string, offset bigint, value binary")


def by_key(df: DataFrame) -> dict[str, Row]:
    return {row["key"]: row for row in df.collect()}


def same(found: Any, expected: Any) -> bool:
    """Whether a value of a row is the value of a model, in the form that people read."""
    if isinstance(expected, Model):
        fields = {name: getattr(expected, name) for name in type(expected).model_fields if name != "kind"}
        if (name := fields.get("format")) is not None and not name.is_listed:
            fields |= {"format": Format.OTHER, "format_name": name.value}
        others = set(found.__fields__) - set(fields)  # of other members of a union in one record
        return all(same(found[name], value) for name, value in fields.items()) and all(found[o] is None for o in others)
    if isinstance(expected, tuple):
        return len(found) == len(expected) and all(map(same, found, expected))
    if isinstance(expected, datetime):
        return bool(found.replace(tzinfo=timezone.utc) == expected)
    if isinstance(expected, FrozenMap):
        return bool(found == dict(expected))
    if isinstance(expected, UUID | EventEnum):
        return bool(found == str(expected))
    return type(found) in {type(expected), bytearray} and bool(found == expected)


def test_bare_from_avro_reads_wrong_values_and_says_nothing(spark: SparkSession) -> None:
    """Why all this is needed: a header that is read as data shifts what comes after it, and often still fits."""
    from pyspark.sql.avro.functions import from_avro

    df = messages(spark, {"now": m.VERSIONS["now"], "one too many": m.BAD["one too many"][0]})
    bare = by_key(df.select("key", from_avro("value", m.NEWEST.text, {"mode": "PERMISSIVE"}).alias("event")))
    wrong = bare["now"]["event"]
    assert wrong["sequence"] != m.COMMITTED.sequence
    assert not same(wrong, m.COMMITTED)


def test_from_avro_drops_what_follows_an_event(spark: SparkSession) -> None:
    from pyspark.sql import functions as f
    from pyspark.sql.avro.functions import from_avro

    df = messages(spark, {"two events in one": m.BAD["two events in one"][0]})
    read = df.select(from_avro(f.expr("substring(value, 11)"), m.NEWEST.text, {"mode": "PERMISSIVE"}).alias("event"))
    assert read.collect()[0]["event"]["barrier"] == m.COMMITTED.barrier


def test_every_message_is_classified(topic: DataFrame) -> None:
    found = by_key(classify(topic, schemas=ADDED))
    assert {name: row["value"] for name, row in found.items()} == EVERYTHING
    for name in m.EVENTS:
        kind = name.split()[0]
        version = current_schema(KINDS[kind]).version
        assert (found[name]["kind"], found[name]["schema_version"], found[name]["problem"]) == (kind, version, None)
    assert [found[name]["schema_version"] for name in m.VERSIONS] == [0, m.NEWEST.version, m.NEW.version]
    assert [found[name]["kind"] for name in m.FUTURE] == ["Rebalanced", None]
    assert found["untold"]["problem"] == "unknown schema"
    assert found["untold"]["fingerprint"] == m.SECRET.fingerprint.hex()
    assert {name: found[name]["problem"] for name in m.BAD} == {name: problem for name, (_, problem) in m.BAD.items()}


@pytest.mark.sample(8)
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_read_as_the_model_has_it(topic: DataFrame, kind: str) -> None:
    read = by_key(events(topic, kind).where(f"key LIKE '{kind} %'"))
    assert set(read) == {name for name in m.EVENTS if name.split()[0] == kind}
    for name, row in read.items():
        assert row["problem"] is None
        assert same(row["event"], EXAMPLES[int(name.split()[1])]), name


def test_columns_are_what_people_read(topic: DataFrame) -> None:
    """By hand, so that nothing but this text says what is right."""
    row = by_key(events(topic, "Committed"))["now"]
    event, output = row["event"], row["event"]["outputs"][0]
    assert event["producer"] == "01890a5d-ac96-774b-bcce-b302099a8057"
    assert event["time"] == datetime(2026, 3, 1, 12, 0, 19)  # noqa: DTZ001  # rows have local times
    assert event["job"]["name"] == "orders_etl.lake.sales.daily"
    assert [i["generation"] for i in event["inputs"]] == [f"9c12d441-03fe-4693-9a96-a0705ddf690{n}" for n in (1, 2, 3)]
    assert event["inputs"][0]["snapshot"] == 8234827348273482734
    assert output["format"] == "ICEBERG"
    assert row["key"] == "now"
    assert row["schema_version"] == m.NEWEST.version


def test_versions_are_read_together(topic: DataFrame) -> None:
    """Old fields have the defaults of Avro, unknown ones are left out, and the codec says the same."""
    rows = by_key(events(topic, "Committed", schemas=ADDED))
    codec = Codec(schemas=SchemaCache((m.OLD, m.NEW)))
    for name, version in (("old", 0), ("now", m.NEWEST.version), ("new", m.NEW.version)):
        decoded = codec.decode(m.VERSIONS[name])
        event = decoded.known if isinstance(decoded, UnknownEvent) else decoded
        assert rows[name]["problem"] is None
        assert rows[name]["schema_version"] == version
        assert same(rows[name]["event"], event), name
    assert (rows["old"]["event"]["application"], rows["old"]["event"]["batch_id"]) == ("", None)


def test_a_newer_schema_gives_its_columns(topic: DataFrame) -> None:
    rows = by_key(events(topic, "Committed", schemas=ADDED, read_as=m.NEW.text))
    assert {name: rows[name]["event"]["note"] for name in m.VERSIONS} == {
        "old": "none",
        "now": "none",
        "new": "from the future",
    }


def test_an_unknown_kind_is_read_by_the_schema_that_was_added(topic: DataFrame) -> None:
    rows = by_key(events(topic, "Rebalanced", schemas=ADDED))
    assert set(rows) == {"rebalanced"}
    assert rows["rebalanced"]["event"]["moved"] == "00000000-0000-0000-0000-000000000005"


def test_bad_bytes_are_reported_and_the_others_are_read(topic: DataFrame) -> None:
    rows = by_key(events(topic, "Committed"))
    bad = {name: problem for name, (value, problem) in m.BAD.items() if (value or b"")[2:10] == m.NEWEST.fingerprint}
    assert {name: rows[name]["problem"] for name in bad} == bad
    assert all(rows[name]["event"] is None for name in bad)
    assert all(rows[name]["event"] is not None for name in set(rows) - set(bad))


def test_every_cut_of_an_event_is_reported(spark: SparkSession) -> None:
    good = m.VERSIONS["now"]
    rows = by_key(events(messages(spark, {str(n): good[:n] for n in range(10, len(good) + 1)}), "Committed"))
    assert [n for n in range(10, len(good) + 1) if rows[str(n)]["problem"] is None] == [len(good)]


def test_mutated_events_are_read_as_the_codec_reads_them_or_told(spark: SparkSession) -> None:
    """Where Spark gives an event, the codec gives the same one, apart from rules that only the models know."""
    mutants: dict[str, bytes | None] = dict(_mutants(random.Random(7), 1_500))  # the same mutants every time
    rows = by_key(events(messages(spark, mutants), "Committed"))
    outcomes = {name: _outcome(rows[name], mutants[name] or b"") for name in rows}
    counts = Counter(outcomes.values())
    assert set(counts) == {"same", "both refuse", "nobody writes this"}, counts
    assert counts["same"] > 100
    assert counts["nobody writes this"] < 50


def _mutants(chance: random.Random, count: int) -> Iterator[tuple[str, bytes]]:
    for number in range(count):
        data = bytearray(m.VERSIONS["now"])
        for _ in range(chance.choice((1, 1, 2, 5))):
            data[chance.randrange(HEADER_BYTES, len(data))] = chance.randrange(256)
        if chance.random() < 0.2:
            data = data[: chance.randrange(HEADER_BYTES, len(data))]
        if chance.random() < 0.2:
            data += chance.randbytes(chance.choice((1, 2, 16)))
        yield str(number), bytes(data)


def _outcome(row: Row, data: bytes) -> str:
    try:
        event = Codec().decode(data)
    except DecodeError as e:
        if row["problem"] is not None or e.problem is Problem.INVALID or "UnicodeDecodeError" in str(e):
            return "both refuse"
        return f"Spark reads what the codec refuses: {e}"
    if not _written_so(event, data):
        return "nobody writes this"
    if row["problem"] is not None:
        return f"Spark refuses what the codec reads: {row['problem']}"
    return "same" if same(row["event"], event) else "different"


def _written_so(event: Any, data: bytes) -> bool:
    """A boolean of 7, an index of -1: Avro doesn't say what they are, no writer writes them, and readers differ."""
    return isinstance(event, Event) and Codec().encode(event) == data


def test_a_stream_is_read_as_a_batch_is(topic: DataFrame, spark: SparkSession, tmp_path: Path) -> None:
    topic.write.parquet(str(tmp_path / "topic"))
    stream = spark.readStream.schema(topic.schema).parquet(str(tmp_path / "topic"))
    read = events(stream, "Committed", schemas=ADDED)
    query = (
        read.writeStream.format("memory")
        .queryName("committed")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    try:
        assert query.awaitTermination(120)
    finally:
        query.stop()
    assert by_key(spark.table("committed")) == by_key(events(topic, "Committed", schemas=ADDED))


def test_raw_events_are_as_spark_makes_them(topic: DataFrame) -> None:
    """All is checked as otherwise; only UUIDs, and unions of a UUID and a text, are Spark's own."""
    readable = by_key(events(topic, "Committed", schemas=ADDED))
    raw = by_key(events(topic, "Committed", schemas=ADDED, raw=True))
    assert {name: row["problem"] for name, row in raw.items()} == {
        name: row["problem"] for name, row in readable.items()
    }
    assert {name for name, row in raw.items() if row["event"] is None} == {
        name for name, row in readable.items() if row["event"] is None
    }
    now = raw["now"]["event"]
    assert set(now.__fields__) == set(readable["now"]["event"].__fields__)
    assert UUID(bytes=bytes(now["producer"])) == UUID("01890a5d-ac96-774b-bcce-b302099a8057")
    assert bytes(now["inputs"][0]["generation"]["member0"]) == UUID("9c12d441-03fe-4693-9a96-a0705ddf6901").bytes
    assert now["barrier"] == readable["now"]["event"]["barrier"]


def test_one_scan_serves_all_versions(topic: DataFrame, spark: SparkSession, tmp_path: Path) -> None:
    topic.write.parquet(str(tmp_path / "topic"))
    read: Any = events(spark.read.parquet(str(tmp_path / "topic")), "Committed", schemas=ADDED)
    versions = sum(schema.kind == "Committed" for schema in released()) + 2  # ours, an old one and a new one
    for each in (read, read.where("event.barrier > 0 AND event.job.name LIKE 'o%'")):
        plan = each._jdf.queryExecution().executedPlan().toString()
        assert plan.count("FileScan") == 1
        assert plan.count("from_avro(") == versions, "a filter on the event reads nothing again"


def test_messages_of_a_schema_registry(spark: SparkSession) -> None:
    """Both framings in one topic: as when a registry was introduced later."""
    record = m.record_of(m.COMMITTED)
    ids = {7: m.NEWEST.text, 2**31 + 5: m.OLD.text}
    values: dict[str, bytes | None] = {
        "seven": b"\0\0\0\0\7" + m.content(m.NEWEST, record),
        "large id": b"\0" + (2**31 + 5).to_bytes(4, "big") + m.content(m.OLD, record),
        "cut": b"\0\0\0\0\7" + m.content(m.NEWEST, record)[:-1],
        "unknown id": b"\0\0\0\0\x08" + m.content(m.NEWEST, record),
        "half an id": b"\0\0\0",
        "single": m.VERSIONS["now"],
    }
    df = messages(spark, values)
    found = {name: (row["kind"], row["problem"]) for name, row in by_key(classify(df, schemas_by_id=ids)).items()}
    assert found == {
        "seven": ("Committed", None),
        "large id": ("Committed", None),
        "cut": ("Committed", "malformed"),
        "unknown id": (None, "unknown schema"),
        "half an id": (None, "malformed"),
        "single": ("Committed", None),
    }
    rows = by_key(events(df, "Committed", schemas_by_id=ids))
    assert same(rows["seven"]["event"], m.COMMITTED)
    assert same(rows["single"]["event"], m.COMMITTED)
    assert rows["large id"]["event"]["barrier"] == m.COMMITTED.barrier


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"value": "valeu"}, "there is no column 'valeu'"),
        ({"value": "key"}, "is of type string: messages are binary"),
        ({"kind": "Commited"}, "did you mean Committed"),
        ({"kind": "Nothing"}, "add its schema"),
        ({"schemas": ["{}"]}, r"schemas\[0\] is no schema"),
        ({"read_as": m.REBALANCED.text}, "a schema of Rebalanced, where Committed"),
        ({"schemas_by_id": {-1: m.OLD.text}}, "no id of a schema registry"),
    ],
)
def test_what_cant_be_read_is_said(topic: DataFrame, change: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"kind": "Committed", **change}
    with pytest.raises(ConfigurationError, match=message):
        events(topic, **arguments)


def test_columns_are_never_replaced(topic: DataFrame) -> None:
    with pytest.raises(ConfigurationError, match="rename kind first"):
        classify(topic.withColumnRenamed("key", "Kind"))


def test_a_schema_that_spark_refuses_is_named(topic: DataFrame) -> None:
    with pytest.raises(ConfigurationError, match="Spark can't read by the schema of Refused"):
        classify(topic, schemas=[m.REFUSED.text])


def test_all_kinds_are_tried() -> None:
    assert {type(example).__name__ for example in EXAMPLES} == set(KINDS)


WITHOUT_AVRO = """
from tests.kit.spark.session import avro_package, spark_session
from headwater.consumers.spark import MissingSparkError, classify
from pathlib import Path
import sys
with spark_session(Path(sys.argv[1]), **{"spark.jars.packages": ""}) as spark:
    try:
        classify(spark.sql("SELECT X'00' AS value"))
    except MissingSparkError as e:
        print(spark.version, e)
"""


def test_a_session_without_avro_is_told_which_package_to_add(java_home: Path) -> None:
    """In a process of its own: a JVM has one class path."""
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_AVRO, str(java_home)],
        cwd=root,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert f"start it with --packages {avro_package()} " in done.stdout, done.stderr
