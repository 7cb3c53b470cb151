"""Hudi's tables in a validation: their states, what their commits added, and results that are made like them.

An instant is called by the time at which it was requested, and time travel goes by that, too. The states of a table
follow each other in the order in which instants were completed. So a state is read again only where both orders agree.

Rows that a result begins with: copied from its sink, by the names of columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

from headwater.errors import TerminalError
from headwater.events.scalars import Format
from headwater.versions.aligned.formats.protocol import session_settings
from headwater.versions.spark_tables import identify, load_table

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from pyspark.sql import DataFrame, SparkSession


_VIEW: Final = "headwater_validation_copy"


class ResultRowsError(TerminalError):
    """Rows can't be copied into a result as they are."""


def insert_rows(spark: SparkSession, result: str, rows: DataFrame, *, but: Collection[str] = ()) -> None:
    """Insert rows into a result, whose name is quoted. Columns that the rows don't have yet are NULL, as they are in
    the sink; `but` are columns that the table's format fills."""
    import pyspark.sql.functions as f  # noqa: PLC0415 - with Spark only

    columns = [column for column in spark.table(result).columns if column not in but]
    known, there = ({name.casefold() for name in names} for names in (columns, rows.columns))
    if gone := [column for column in rows.columns if column.casefold() not in known]:
        raise ResultRowsError(f"column {gone[0]} was dropped from the sink since, so its rows of then don't fit")
    values = (f.col(f"`{column}`") if column.casefold() in there else f.lit(None).alias(column) for column in columns)
    rows.select(*values).createOrReplaceTempView(_VIEW)
    try:
        spark.sql(f"INSERT INTO {result} SELECT * FROM {_VIEW}")  # noqa: S608 - names of ours
    finally:
        spark.catalog.dropTempView(_VIEW)


HUDI: Final = Format.HUDI.value
_COMMIT_TIME: Final = "_hoodie_commit_time"
_OWN_COLUMNS: Final = (
    _COMMIT_TIME,
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
    "_hoodie_operation",
)
"""Columns in which Hudi says which commit and file a row is of. They differ each time, so they aren't compared."""
_OF_ROWS: Final[Mapping[str, str]] = {
    "hoodie.table.type": "",
    "hoodie.table.recordkey.fields": "",
    "hoodie.table.partition.fields": "",
    "hoodie.table.ordering.fields": "",
    "hoodie.table.precombine.field": "",
    "hoodie.table.keygenerator.type": "",
    "hoodie.table.keygenerator.class": "",
    "hoodie.record.merge.mode": "",
    "hoodie.record.merge.strategy.id": "",
    "hoodie.compaction.payload.class": "",
    "hoodie.table.legacy.payload.class": "",
    "hoodie.populate.meta.fields": "true",
    "hoodie.datasource.write.drop.partition.columns": "false",
}
"""What decides about a table's rows among what Hudi keeps of it, and what is meant where it says nothing."""
_OF_PLACE: Final = frozenset(
    {
        *("path", "location", "provider", "owner", "external", "is_managed_location"),
        *("hoodie.table.name", "hoodie.database.name", "hoodie.base.path", "hoodie.datasource.write.table.name"),
    }
)
_OUTSIDE: Final = (
    "option.",
    "hoodie.datasource.hive_sync.",
    "hoodie.datasource.meta.sync.",
    "hoodie.datasource.meta_sync.",
    "hoodie.meta.sync.",
    "hoodie.write.lock.",
    "hoodie.write.concurrency.",
    "hoodie.write.commit.callback.",
)
"""What would have the result known elsewhere in its sink's place, or wait for those that write its sink."""
_AS_THEY_ARE: Final = {
    "hoodie.combine.before.insert": "false",
    "hoodie.datasource.insert.dup.policy": "none",
    "hoodie.datasource.write.insert.drop.duplicates": "false",
    "hoodie.spark.sql.insert.into.operation": "bulk_insert",
}
"""Settings with which rows of one key are copied as they are."""


class HudiResultError(TerminalError):
    """A result can't be made like a table of Hudi."""


def without_own_columns(rows: DataFrame) -> DataFrame:
    """Return rows without the columns that Hudi adds."""
    return rows.drop(*_OWN_COLUMNS)


def state_at(spark: SparkSession, name: str, snapshot: int) -> DataFrame:
    """Return all rows of a table at an instant, without Hudi's own columns."""
    return without_own_columns(_whole_state_at(spark, name, snapshot))


def additions_of(spark: SparkSession, name: str, snapshots: Iterable[int]) -> DataFrame:
    """Return the rows that commits added which only add: Hudi writes into each row which commit made it."""
    import pyspark.sql.functions as f  # noqa: PLC0415 - with Spark only

    states = ((snapshot, _whole_state_at(spark, name, snapshot)) for snapshot in snapshots)
    parts = [without_own_columns(rows.where(f.col(_COMMIT_TIME) == str(instant))) for instant, rows in states]
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), parts)


def may_replace_rows(spark: SparkSession, name: str) -> bool:
    """Return whether adding a row may replace another one, or rows don't say which commit made them."""
    found = _configuration(_client(spark, name))
    return bool(found["hoodie.table.recordkey.fields"]) or found["hoodie.populate.meta.fields"] == "false"


def problems_of_state(spark: SparkSession, name: str, snapshot: int) -> Iterator[str]:
    """Yield why time travel doesn't give the state that an instant made, without the table's name."""
    client = _client(spark, name)
    line = _completed(client.getActiveTimeline().getCommitsTimeline())
    if snapshot not in line:
        yield "isn't in the table's timeline any more: it was archived or rolled back, or the table was made again"
        return
    end = (line[snapshot], snapshot)
    others = [instant for instant, completed in line.items() if (instant <= snapshot) != ((completed, instant) <= end)]
    archived = client.getArchivedTimeline().getCommitsTimeline()
    late = archived.findInstantsInRangeByCompletionTime(str(end[0]), "9" * 17)
    others += [] if late.empty() else [int(late.firstInstant().get().requestedTime())]
    if others:
        yield (
            f"was completed in another order than it was requested in, as was {others[0]}: Hudi's time travel goes by "
            "the order of requests, and gives another state"
        )
    if open_ones := [instant for instant in _open_writes(client) if instant < snapshot]:
        yield f"may change yet: {open_ones[0]} was requested before it and isn't completed. Wait, or roll it back"
    if _is_cleaned(client, snapshot, line):
        yield "was cleaned since: files of it are gone. Have the cleaner keep more commits"


def problems_of_settings(spark: SparkSession) -> Iterator[str]:
    """Yield which settings of the session would have a result take its sink's place elsewhere."""
    inside: Any = spark
    names = inside._jsparkSession.sessionState().conf().getAllConfs().keySet().iterator()  # noqa: SLF001
    while names.hasNext():
        name = str(names.next())
        if "sync." in name and name.startswith(_OUTSIDE) and name.endswith((".table", ".database")):
            yield f"{name} is set, so Hudi would sync the result in its sink's place: leave it out for this run"


def make_like(spark: SparkSession, sink: str, result: str) -> None:
    """Make an empty table with the columns, partitions, keys and properties of another one."""
    inside: Any = spark
    jvm = inside._jvm  # noqa: SLF001
    found = load_table(spark, sink)
    _, other = identify(spark, result)
    fields, properties = jvm.java.util.ArrayList(), jvm.java.util.HashMap()
    for field in found.table.schema().fields():
        if field.name() not in _OWN_COLUMNS:
            fields.add(field)
    own = found.table.properties()
    for name in own.keySet().toArray():
        if name not in _OF_PLACE and not str(name).startswith(_OUTSIDE):
            properties.put(name, own.get(name))
    properties.put("provider", "hudi")
    schema = jvm.org.apache.spark.sql.types.DataTypes.createStructType(fields)
    found.catalog.createTable(other, schema, found.table.partitioning(), properties)
    wanted, made = (_configuration(_client(spark, table)) for table in (sink, result))
    if unlike := [key for key in _OF_ROWS if wanted[key] != made[key]]:
        first = unlike[0]
        raise HudiResultError(f"{first} is {wanted[first] or 'not set'}, and {made[first] or 'not set'} in the result")


def fill(spark: SparkSession, result: str, rows: DataFrame) -> None:
    """Copy rows into a result, all of them as they are."""
    with session_settings(spark, _AS_THEY_ARE):
        insert_rows(spark, result, rows, but=_OWN_COLUMNS)
    wanted, copied = rows.count(), spark.table(result).count()
    if wanted != copied:
        raise HudiResultError(f"of {wanted:,} rows {copied:,} were copied")


def _whole_state_at(spark: SparkSession, name: str, snapshot: int) -> DataFrame:
    return spark.sql(f"SELECT * FROM {name} TIMESTAMP AS OF '{snapshot}'")  # noqa: S608 - the user's own table


def _client(spark: SparkSession, name: str) -> Any:
    """Return Hudi's own view of a table, as it is now."""
    inside: Any = spark
    hudi = inside._jvm.org.apache.hudi  # noqa: SLF001
    place = load_table(spark, name, anew=True).table.properties().get("location")
    conf = hudi.hadoop.fs.HadoopFSUtils.getStorageConf(inside._jsparkSession.sessionState().newHadoopConf())  # noqa: SLF001
    return hudi.common.table.HoodieTableMetaClient.builder().setConf(conf).setBasePath(place).build()


def _completed(timeline: Any) -> dict[int, int]:
    """Return when instants were completed, by the time at which they were requested."""
    found = {}
    for instant in timeline.filterCompletedInstants().getInstants():
        requested = str(instant.requestedTime())
        found[int(requested)] = int(instant.getCompletionTime() or requested)
    return found


def _open_writes(client: Any) -> list[int]:
    """Return when those writes were requested that aren't completed. A clustering changes no rows."""
    found = client.getActiveTimeline().getCommitsTimeline().filterInflightsAndRequested().getInstants()
    return [int(instant.requestedTime()) for instant in found if str(instant.getAction()) != "clustering"]


def _is_cleaned(client: Any, snapshot: int, line: Iterable[int]) -> bool:
    """Return whether files of a state may be gone. Hudi's own check looks at the last clean alone, and passes where the
    cleaner keeps versions of files: then rows would be missing without an error."""
    timeline = client.getActiveTimeline()
    for instant in timeline.getCleanerTimeline().filterCompletedInstants().getInstants():
        at = int(instant.requestedTime())
        if at < snapshot:
            continue
        clean = timeline.readCleanMetadata(instant)
        kept = str(clean.getEarliestCommitToRetain() or "")
        if kept and int(kept) > snapshot:
            return True
        is_newest = not any(snapshot < other < at for other in line)  # the newest versions are kept
        if not kept and not is_newest and int(clean.getTotalFilesDeleted()) > 0:
            return True
    return False


def _configuration(client: Any) -> dict[str, str]:
    """Return what decides about a table's rows, as Hudi keeps it beside them."""
    found = client.getTableConfig().getProps()
    values = {name: found.get(name) for name in _OF_ROWS}
    return {name: _OF_ROWS[name] if value is None else str(value) for name, value in values.items()}
