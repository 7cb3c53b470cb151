"""Events out of a DataFrame of messages, for batch and for Structured Streaming."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from headwater.consumers.spark.known import SCHEMA_MESSAGE, Known, checked_schema, known_schemas, reader_schema
from headwater.consumers.spark.marker import MARK
from headwater.consumers.spark.session import functions, require_avro, warn_without_limits
from headwater.consumers.spark.steps import EVENT_COLUMN, MARK_COLUMN, Reading, Steps
from headwater.errors import ConfigurationError
from headwater.events.avro import WriterSchema
from headwater.events.avro.book import MAX_LEARNED

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

ADDED_COLUMNS: Final = ("kind", "schema_version", "fingerprint", "problem")
_log = logging.getLogger(__name__)


def classify(
    df: DataFrame,
    *,
    value: str = "value",
    schemas: Iterable[str] = (),
    schemas_by_id: Mapping[int, str] | None = None,
) -> DataFrame:
    """All rows, with what each message is: `kind`, `schema_version`, `fingerprint` and `problem`.

    `kind` is null where no schema is known for the message, SchemaMessage where it tells a schema. `problem` is null
    where the message is one event and nothing else, else it says why not: "unknown schema", or a word of
    `headwater.events.avro.Problem`. The messages stay in their column as they are.
    """
    known = known_schemas(schemas, schemas_by_id)
    _require(df, value, ADDED_COLUMNS, known)
    steps = Steps(value, known)
    marked = _with_header(df, steps).withColumn(MARK_COLUMN, _read(steps.readings(), field=MARK))
    return marked.withColumn("problem", functions().expr(steps.problem(MARK_COLUMN))).select(
        *df.columns, *ADDED_COLUMNS
    )


def events(
    df: DataFrame,
    kind: str,
    *,
    value: str = "value",
    schemas: Iterable[str] = (),
    schemas_by_id: Mapping[int, str] | None = None,
    read_as: str | None = None,
) -> DataFrame:
    """The rows of one kind, with the columns of `classify` and the event as the struct `event`.

    Whatever version wrote it, an event has the fields of this package's newest version of the kind, or those of the
    schema text `read_as`. UUIDs are text, times are timestamps. Where `problem` says that the bytes aren't sound,
    `event` is null. `schemas` are texts that aren't in the package, as `schemas_in` finds them in a topic;
    `schemas_by_id` are those of a schema registry, for messages in the framing of Confluent.
    """
    everything = known_schemas(schemas, schemas_by_id)
    reader = reader_schema(kind, everything, read_as)
    steps = Steps(value, everything.of_kind(kind))
    added = (*ADDED_COLUMNS, "event")
    _require(df, value, added, steps.known)
    read = _events(_with_header(df, steps), steps, reader)
    return read.withColumn("event", functions().expr(steps.event(reader))).select(*df.columns, *added)


def schemas_in(df: DataFrame, *, value: str = "value") -> list[str]:
    """The schemas that messages of a topic tell and the package doesn't have, for `schemas=` of the other functions.

    Anybody may have written them: what isn't a schema of an event is left out with a warning in the log. It runs a job,
    so it takes a batch DataFrame; a stream gets the schemas from a batch over the same topic.
    """
    if df.isStreaming:
        raise ConfigurationError("schemas_in runs a job: give it a batch DataFrame over the same topic")
    steps = Steps(value, Known((SCHEMA_MESSAGE,)))
    _require(df, value, ADDED_COLUMNS, steps.known)
    told = _events(_with_header(df, steps), steps, SCHEMA_MESSAGE).where("problem IS NULL")
    rows = told.select(f"{EVENT_COLUMN}.schema").distinct().limit(MAX_LEARNED).collect()
    return [row.schema for row in rows if _usable(df.sparkSession, row.schema)]


def _with_header(df: DataFrame, steps: Steps) -> DataFrame:
    f = functions()
    df = df.withColumn("fingerprint", f.expr(steps.fingerprint()))
    for name, expression in steps.header().items():
        df = df.withColumn(name, f.expr(expression))
    return df


def _events(df: DataFrame, steps: Steps, reader: WriterSchema) -> DataFrame:
    """The rows of the known schemas with their event as Spark has it, or with what is wrong with it."""
    f = functions()
    read = df.where(steps.of_these_schemas()).withColumn(EVENT_COLUMN, _read(steps.readings(reader)))
    told = read.withColumn("problem", f.expr(steps.problem(f"{EVENT_COLUMN}.{MARK}")))
    sound = told.withColumn(EVENT_COLUMN, f.expr(steps.sound_event(reader)))
    return sound.withColumn("problem", f.expr(steps.problem_of_event()))


def _read(readings: Sequence[Reading], field: str | None = None) -> Column:
    """One expression for all readings: the first whose condition holds is evaluated, and no other."""
    from pyspark.sql.avro.functions import from_avro  # noqa: PLC0415  # pyspark is asked for by require_avro before

    f = functions()
    choice: Column | None = None
    for reading in readings:
        record = from_avro(f.expr(reading.content), reading.writer, reading.options)
        wanted = record if field is None else record[field]
        choice = (f if choice is None else choice).when(f.expr(reading.condition), wanted)
    return f.lit(None) if choice is None else choice


def _require(df: DataFrame, value: str, added: Sequence[str], known: Known) -> None:
    f = functions()
    if value not in df.columns:
        raise ConfigurationError(f"there is no column {value!r} here, but {', '.join(df.columns)}: name it with value=")
    found = df.select(f.expr(f"`{value}`")).schema.fields[0].dataType.simpleString()
    if found != "binary":
        raise ConfigurationError(f"the column {value!r} is of type {found}: messages are binary, so don't cast them")
    taken = {name.lower() for name in df.columns} & {*added, EVENT_COLUMN, MARK_COLUMN}
    if taken:
        raise ConfigurationError(f"columns of these names would be added: rename {', '.join(sorted(taken))} first")
    require_avro(df.sparkSession)
    warn_without_limits(df.sparkSession)
    for schema in known.added:
        _require_spark_takes(df.sparkSession, schema)


def _usable(spark: SparkSession, text: str) -> bool:
    try:
        schema = checked_schema(text, "a schema message")
        _require_spark_takes(spark, schema)
    except ConfigurationError as e:
        _log.warning("left out: %s", e)
        return False
    return schema.fingerprint not in _package()


def _package() -> frozenset[bytes]:
    return frozenset(s.fingerprint for s in known_schemas().schemas)


def _require_spark_takes(spark: SparkSession, schema: WriterSchema) -> None:
    """Java's Avro is stricter than Python's, and one schema that it refuses would end a query over all of them."""
    reading = Reading("true", "X'00'", schema.text, schema.text)
    try:
        spark.range(0).select(_read([reading])).schema  # noqa: B018  # asking for it is what parses
    except Exception as e:
        reason = str(e).strip().splitlines()[0][:300]
        raise ConfigurationError(f"Spark can't read by the schema of {schema.kind} v{schema.version}: {reason}") from e
