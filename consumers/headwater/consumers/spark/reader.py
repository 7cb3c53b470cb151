"""Extracts events from a DataFrame of messages, for batch queries and Structured Streaming."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from headwater.consumers.spark.query_steps import EVENT_COLUMN, MARK, MARK_COLUMN, AvroRead, QuerySteps
from headwater.consumers.spark.schemas import KnownSchemas, known_schemas, reader_schema
from headwater.consumers.spark.session import functions, require_avro, warn_without_limits
from headwater.errors import ConfigurationError
from headwater.events.avro import WriterSchema
from headwater.events.redaction import redacted_excerpt

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

ADDED_COLUMNS: Final = ("kind", "schema_version", "fingerprint", "problem")


def classify(
    df: DataFrame,
    *,
    value: str = "value",
    schemas: Iterable[str] = (),
    schemas_by_id: Mapping[int, str] | None = None,
) -> DataFrame:
    """Return all rows with what each message is: `kind`, `schema_version`, `fingerprint` and `problem`.

    `kind` is null if the message's schema is unknown. `problem` is null if the message is exactly one event.
    Otherwise it is "unknown schema", or a value of `headwater.events.avro.Problem`. The messages stay in their
    column.
    """
    known = known_schemas(schemas, schemas_by_id)
    _require(df, value, ADDED_COLUMNS, known)
    steps = QuerySteps(value, known)
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
    raw: bool = False,
) -> DataFrame:
    """Return the rows of one kind, with the columns of `classify` and the event as the struct `event`.

    Whatever version wrote it, an event has the fields of this package's newest version of the kind, or of the schema
    text `read_as`. UUIDs are text, times are timestamps. Where `problem` is set, `event` is null. `schemas` are
    additional schema texts, of a newer headwater for example; `schemas_by_id` are those of a schema registry, for
    messages in Confluent's format.

    With `raw` the event is as Spark makes it of Avro, which takes little more time than `from_avro` alone: UUIDs are 16
    bytes, and what is a UUID or a text is a struct of both, `member0` and `member1`.
    """
    everything = known_schemas(schemas, schemas_by_id)
    reader = reader_schema(kind, everything, read_as)
    steps = QuerySteps(value, everything.of_kind(kind))
    added = (*ADDED_COLUMNS, "event")
    _require(df, value, added, steps.known)
    return _events(_with_header(df, steps), steps, reader, raw=raw).select(*df.columns, *added)


def _with_header(df: DataFrame, steps: QuerySteps) -> DataFrame:
    f = functions()
    df = df.withColumn("fingerprint", f.expr(steps.fingerprint()))
    for name, expression in steps.header().items():
        df = df.withColumn(name, f.expr(expression))
    return df


def _events(df: DataFrame, steps: QuerySteps, reader: WriterSchema, *, raw: bool) -> DataFrame:
    """Return the rows of known schemas with their event, or its problem.

    What is read goes through `explode`, one row for one: Spark pushes no filter on the event below that, which would
    read each message again for each place where the filter uses it.
    """
    f = functions()
    known = df.where(steps.of_these_schemas())
    read = known.select("*", f.explode(f.array(_read(steps.readings(reader)))).alias(EVENT_COLUMN))
    return read.withColumns(
        {"problem": f.expr(steps.problem_of_event(reader)), "event": f.expr(steps.event(reader, raw=raw))}
    )


def _read(readings: Sequence[AvroRead], field: str | None = None) -> Column:
    """Combine all reads into one expression. Only the first read whose condition holds is evaluated."""
    from pyspark.sql.avro.functions import from_avro  # noqa: PLC0415  # pyspark is asked for by require_avro before

    f = functions()
    choice: Column | None = None
    for reading in readings:
        record = from_avro(f.expr(reading.content), reading.writer, reading.options)
        wanted = record if field is None else record[field]
        choice = (f if choice is None else choice).when(f.expr(reading.condition), wanted)
    return f.lit(None) if choice is None else choice


def _require(df: DataFrame, value: str, added: Sequence[str], known: KnownSchemas) -> None:
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


def _require_spark_takes(spark: SparkSession, schema: WriterSchema) -> None:
    """Check that Java's Avro accepts the schema. It is stricter than Python's, and one refused schema would fail a
    query over all."""
    reading = AvroRead("true", "X'00'", schema.text, schema.text)
    try:
        spark.range(0).select(_read([reading])).schema  # noqa: B018  # asking for it is what parses
    except Exception as e:
        reason = redacted_excerpt(str(e).strip().splitlines()[0], 300)
        raise ConfigurationError(f"Spark can't read by the schema of {schema.kind} v{schema.version}: {reason}") from e
