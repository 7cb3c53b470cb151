"""The tables that a job writes in place of its sinks: made like them, and removed. Sinks are only read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import reduce
from itertools import count, islice
from typing import TYPE_CHECKING, Any, Final

from headwater.errors import TerminalError
from headwater.lens import TargetEffect, TargetUse
from headwater.versions.aligned.formats import TableLooker
from headwater.versions.aligned.formats.protocol import CommitEffect, SourceCommit
from headwater.versions.spark_tables import identify, load_table
from headwater.versions.validation import hudi_tables
from headwater.versions.validation.hudi_tables import HUDI, insert_rows
from headwater.versions.validation.model import ComparedRows, PinnedInput, RedirectedOutput, ResultStart
from headwater.versions.validation.pinned_inputs import TOPIC

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SESSION_CATALOG: Final = "spark_catalog"
_OF_PLACE: Final = frozenset(
    {
        *("path", "location", "provider", "owner", "external", "is_managed_location", "current-snapshot-id"),
        *("write.data.path", "write.metadata.path", "write.object-storage.path", "write.folder-storage.path"),
        *("write.location-provider.impl", "schema.name-mapping.default", "gc.enabled", "uuid", "sort-order", "format"),
        *("data-file.path-directory", "data-file.external-paths", "identifier-fields", "snapshot-count"),
        *("metastore.partitioned-table", "branch"),
    }
)
"""Properties that say where a table is or which one it is. A result with them would write into its sink's directory."""


class ResultTableError(TerminalError):
    """A result table can't be made like its sink."""


def full_name(table: str) -> str:
    """Quote a name of catalog, namespace and table."""
    return ".".join(f"`{part}`" for part in table.split("."))


class ResultTables:
    """The results of one validation, in a namespace of their own in each sink's catalog."""

    def __init__(self, spark: SparkSession, scratch: str, outputs: Sequence[RedirectedOutput]) -> None:
        self._spark = spark
        self._scratch = scratch
        self._outputs = outputs
        self.names: dict[str, str] = {}
        """The result of each sink."""
        self._own: list[RedirectedOutput] = []
        """Those whose results weren't there before: they alone are removed."""
        self._namespaces: list[str] = []
        """The catalogs in which the namespace wasn't there before."""
        for output in outputs:
            name = f"{_catalog_of(output.table)}.{scratch}.{output.table.rpartition('.')[2]}"
            others = (f"{name}_{number}" for number in count(2))
            self.names[output.table] = next(
                one for one in (name, *islice(others, len(outputs))) if one not in self.names.values()
            )

    def create(self) -> None:
        """Make the results: like their sinks, empty or with what those held before the job."""
        for catalog in sorted({_catalog_of(output.table) for output in self._outputs}):
            if not _has_namespace(self._spark, catalog, self._scratch):
                self._spark.sql(f"CREATE NAMESPACE IF NOT EXISTS `{catalog}`.`{self._scratch}`")
                self._namespaces.append(catalog)
        for output in self._outputs:
            name = self.names[output.table]
            if self._spark.catalog.tableExists(full_name(name)):
                raise ResultTableError(f"{name} is there already: drop it, or name another namespace by --scratch")
            self._own.append(output)
            if output.start is ResultStart.ABSENT:
                continue
            try:
                self._make(output, name)
            except Exception as e:
                raise ResultTableError(f"no result table can be made like {output.table}: {_first_line(e)}") from e

    def drop(self, spark: SparkSession) -> list[str]:
        """Remove the results, and return those that couldn't be removed. They share no file with their sinks."""
        left = []
        for output in self._own:
            name = self.names[output.table]
            try:
                _drop(spark, name, purge=output.format == "ICEBERG")
            except Exception:  # noqa: BLE001 - what is left is said by name
                left.append(name)
        for catalog in () if left else self._namespaces:
            with suppress(Exception):  # somebody else's table may be in it
                _drop_namespace(spark, catalog, self._scratch)
        return left

    def _make(self, output: RedirectedOutput, result: str) -> None:
        copied = output.before if output.start is ResultStart.COPY else None
        if output.format == "DELTA":
            self._make_delta(output.table, result, copied)
            return
        if output.format == HUDI:
            hudi_tables.make_like(self._spark, full_name(output.table), full_name(result))
            if copied is not None:
                rows = state_at(self._spark, output.table, copied, output.format)
                hudi_tables.fill(self._spark, full_name(result), rows)
            return
        _create_like(self._spark, output.table, result)
        if copied is not None:
            rows = state_at(self._spark, output.table, copied, output.format)
            insert_rows(self._spark, full_name(result), rows)

    def _make_delta(self, sink: str, result: str, copied: int | None) -> None:
        """A shallow clone reads the sink's files and writes its own."""
        if copied is None and _catalog_of(sink) == _SESSION_CATALOG:  # LIKE knows no other, and no name of a catalog
            self._spark.sql(f"CREATE TABLE {_within_catalog(result)} LIKE {_within_catalog(sink)}")
        elif copied is None:
            _create_like(self._spark, sink, result, provider="delta")
        else:
            source = f"{full_name(sink)} VERSION AS OF {copied}"
            self._spark.sql(f"CREATE TABLE {full_name(result)} SHALLOW CLONE {source}")


def state_at(spark: SparkSession, table: str, snapshot: int, format_name: str | None) -> DataFrame:
    """Return all rows of a table at a snapshot."""
    if format_name == HUDI:
        return hudi_tables.state_at(spark, full_name(table), snapshot)
    return spark.sql(f"SELECT * FROM {full_name(table)} VERSION AS OF {snapshot}")  # noqa: S608 - the user's own table


def rows_of_result(spark: SparkSession, result: str, output: RedirectedOutput) -> DataFrame:
    """Return all rows that a job wrote in place of a sink."""
    rows = spark.table(full_name(result))
    return hudi_tables.without_own_columns(rows) if output.format == HUDI else rows


def states_needed(output: RedirectedOutput, *, snapshot: int | None, rows: ComparedRows) -> list[int]:
    """Return the snapshots of a sink that are read: what the result begins with, and if the sink is compared at a
    snapshot what it is compared with."""
    # Whether adding rows to a table of Hudi may replace others isn't known yet: then its result begins as a copy.
    may_begin_with_it = output.format == HUDI and output.start is ResultStart.EMPTY and not output.replaces_first
    found = [output.before] if output.start is ResultStart.COPY or may_begin_with_it else []
    if snapshot is not None:
        found.append(snapshot)
        if rows is ComparedRows.ADDED:
            found += [made if output.format == HUDI else parent for parent, made in output.commits]
    return list(dict.fromkeys(problem for problem in found if problem is not None))


def additions_of(spark: SparkSession, output: RedirectedOutput) -> DataFrame:
    """Return the rows that a job's commits added, and not those of other jobs in between."""
    if output.format == HUDI:
        return hudi_tables.additions_of(spark, full_name(output.table), [made for _, made in output.commits])
    table = TableLooker(spark).source(full_name(output.table))
    parts = []
    for parent, snapshot in output.commits:
        if parent is None:
            parts.append(state_at(spark, output.table, snapshot, output.format))
            continue
        commits = [SourceCommit(snapshot, CommitEffect.ADDS, "append")]
        parts.append(table.additions(table.at(parent), table.at(snapshot), commits))
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), parts)


def replaces_rows_of_keys(spark: SparkSession, output: RedirectedOutput) -> bool:
    """Return whether an append to the table may replace rows: tables of Paimon and Hudi with a primary key do that."""
    if output.format == HUDI:
        return hudi_tables.may_replace_rows(spark, full_name(output.table))
    if output.format != "PAIMON":
        return False
    return bool(dict(_copied_properties(load_table(spark, full_name(output.table)).table)).get("primary-key"))


def problems_of_input(spark: SparkSession, pinned: PinnedInput) -> Iterator[str]:
    """Yield why a pinned table can't be read at its version any more."""
    name = next((name for name in pinned.names if "/" not in name), None)
    if name is None or pinned.format in {None, TOPIC}:
        return  # read by its path alone, chosen by the user, or a topic: reading it says what is wrong
    yield from problems_of_table(spark, name, int(pinned.snapshot), pinned.generation, pinned.format)


def problems_of_table(
    spark: SparkSession, table: str, snapshot: int, generation: str | None, format_name: str | None = None
) -> Iterator[str]:
    """Yield why a table can't be read at a snapshot: it isn't there, was made anew, or the snapshot has expired."""
    if format_name == HUDI:
        yield from _problems_of_hudi(spark, table, snapshot)
        return
    try:
        now = TableLooker(spark).source(full_name(table)).generation
    except Exception as e:  # noqa: BLE001 - each format and release has errors of its own
        yield f"{table} can't be read: {_first_line(e)}"
        return
    if generation not in (None, now):
        yield f"{table} was dropped and made again since: its snapshot {snapshot} is of the table before"
        return
    try:
        state_at(spark, table, snapshot, format_name).limit(1).collect()
    except Exception as e:  # noqa: BLE001
        yield f"{table}@{snapshot} can't be read any more, it may have expired: {_first_line(e)}"


def _problems_of_hudi(spark: SparkSession, table: str, snapshot: int) -> Iterator[str]:
    try:
        found = list(hudi_tables.problems_of_state(spark, full_name(table), snapshot))
        if not found:
            hudi_tables.state_at(spark, full_name(table), snapshot).limit(1).collect()
    except Exception as e:  # noqa: BLE001
        found = [f"can't be read: {_first_line(e)}"]
    yield from (f"{table}@{snapshot} {problem}" for problem in found)


def problems_of_settings(spark: SparkSession, output: RedirectedOutput) -> Iterator[str]:
    """Yield which settings of the session would have a result take its sink's place."""
    if output.format == HUDI:
        yield from hudi_tables.problems_of_settings(spark)


def problems_of_uses(
    outputs: Sequence[RedirectedOutput], results: Mapping[str, str], uses: Sequence[TargetUse]
) -> Iterator[str]:
    """Yield which results began empty, and were used in a way to which that makes a difference: the changed job reads
    the table, replaces a part of its rows, or adds rows where it replaced all."""
    for output in outputs:
        if output.start is not ResultStart.EMPTY or output.before is None:
            continue
        effects = [use.effect for use in uses if use.table == results[output.table]]
        effects = [effect for effect in effects if effect is not TargetEffect.KEEPS]
        if output.replaces_first:
            is_independent = effects[:1] == [TargetEffect.REPLACES_ALL]
            usual = "replaced all rows of it first"
        else:
            is_independent = set(effects) <= {TargetEffect.ADDS}
            usual = "only added rows to it"
        if not is_independent:
            yield (
                f"the job used {output.table} in another way than when it was recorded: then it {usual}, so the result "
                "began empty. Say --copy to have it begin with what was there"
            )


def _within_catalog(table: str) -> str:
    return full_name(table.partition(".")[2])


def _create_like(spark: SparkSession, sink: str, result: str, provider: str | None = None) -> None:
    """Make a table with the columns, partitions and properties of another one, by Spark's interface for catalogs."""
    inside: Any = spark  # SQL has LIKE for tables of Spark's own catalog only
    jvm = inside._jvm  # noqa: SLF001
    found = load_table(spark, full_name(sink))
    _, other = identify(spark, full_name(result))
    table = found.table
    properties = jvm.java.util.HashMap()
    for name, value in _copied_properties(table):
        properties.put(name, value)
    if provider is not None:
        properties.put("provider", provider)
    found.catalog.createTable(other, table.schema(), table.partitioning(), properties)


def _copied_properties(table: Any) -> Iterator[tuple[str, str]]:
    found = table.properties()
    for name in found.keySet().toArray():
        if name not in _OF_PLACE and not str(name).startswith("option."):
            yield str(name), str(found.get(name))


def _has_namespace(spark: SparkSession, catalog: str, namespace: str) -> bool:
    found, levels = _catalog_and_levels(spark, catalog, namespace)
    return bool(found.namespaceExists(levels))


def _drop_namespace(spark: SparkSession, catalog: str, namespace: str) -> None:
    """Remove a namespace unless something is in it. No statement: the lens of `spark` lets none drop a namespace."""
    found, levels = _catalog_and_levels(spark, catalog, namespace)
    found.dropNamespace(levels, False)


def _catalog_and_levels(spark: SparkSession, catalog: str, namespace: str) -> tuple[Any, Any]:
    inside: Any = spark
    levels = inside.sparkContext._gateway.new_array(inside._jvm.java.lang.String, 1)  # noqa: SLF001
    levels[0] = namespace
    return inside._jsparkSession.sessionState().catalogManager().catalog(catalog), levels  # noqa: SLF001


def _drop(spark: SparkSession, table: str, *, purge: bool) -> None:
    spark.sql(f"DROP TABLE IF EXISTS {full_name(table)}{' PURGE' if purge else ''}")


def _catalog_of(table: str) -> str:
    return table.partition(".")[0]


def _first_line(error: BaseException) -> str:
    of_java = getattr(error, "java_exception", None)  # of an error that Spark has no class of its own for
    lines = (str(error) if of_java is None else str(of_java.toString())).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else 'no message'}"[:300]
