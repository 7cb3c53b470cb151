"""What a lake store needs to know of a table format, and what it is for Delta and for Iceberg."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any, ClassVar, Final, Protocol

from headwater.errors import ConfigurationError
from headwater.lineage.lake.address import DELTA, ICEBERG, LakeAddress


class SqlSession(Protocol):
    """A Spark session, as far as it is used here."""

    @property
    def conf(self) -> Any: ...

    def sql(self, sqlQuery: str) -> Any: ...  # noqa: N803 - as Spark calls it


class LakeFormat(ABC):
    """The statements of one table format. It keeps nothing, so any thread may use it."""

    title: ClassVar[str]
    """The format's name as people write it."""
    extensions: ClassVar[str]
    """The class for `spark.sql.extensions`, by which Spark knows the format's statements."""
    catalog_class: ClassVar[str]
    """The class of a catalog of Spark with such tables."""
    packages: ClassVar[Mapping[str, str]]
    """The package of Maven for each line of Spark."""
    conflicts: ClassVar[Sequence[str]]
    """What an exception is called where somebody else has changed a table meanwhile, or nobody knows whether a commit
    was made. Each is part of a class's name."""

    def package(self, version: str) -> str:
        """Return the package of Maven for a version of Spark, or raise a ConfigurationError if none is known."""
        found = self.packages.get(".".join(version.split(".")[:2]))
        if found is None:
            raise ConfigurationError(
                f"there is no {self.title} that this headwater knows for Spark {version}: use Spark "
                f"{', '.join(self.packages)}, or name the package by --conf spark.jars.packages=…"
            )
        return found

    @abstractmethod
    def clauses(self, properties: Mapping[str, str]) -> str:
        """Return what stands behind the columns of CREATE TABLE."""

    @abstractmethod
    def newest_version(self, session: SqlSession, table: str) -> int | None:
        """Return the version of a table as it is now, or None if nothing was written into it."""

    def at_version(self, table: str, version: int) -> str:
        """Return what stands behind FROM for a table as it was in a version."""
        return f"{table} VERSION AS OF {version}"

    @abstractmethod
    def compact(self, session: SqlSession, address: LakeAddress, name: str, sort: str | None, smallest: int) -> int:
        """Rewrite a table's small files if there are as many as `smallest`, sorted by a column if one is named. Return
        how many files were rewritten."""

    @abstractmethod
    def expire(self, session: SqlSession, address: LakeAddress, name: str, before: datetime, retained: int) -> int:
        """Remove what only versions before a time need, but for the newest versions. Return how many files went."""

    def check_session(self, session: SqlSession, address: LakeAddress) -> None:
        """Raise a ConfigurationError if a session can't write such tables."""
        catalog = f"spark.sql.catalog.{address.catalog}"
        if session.conf.get(catalog, None) is None:
            raise ConfigurationError(
                f"{catalog} isn't set, so Spark doesn't know the catalog {address.catalog}: give it --conf "
                f"{catalog}={self.catalog_class}, and what else the catalog needs"
            )
        if self.extensions.rpartition(".")[2] not in (session.conf.get("spark.sql.extensions", "") or ""):
            raise ConfigurationError(
                f"spark.sql.extensions lacks that of {self.title}, by which Spark knows its statements: give it --conf "
                f"spark.sql.extensions={self.extensions}"
            )


def text_of_properties(properties: Mapping[str, str]) -> str:
    """Return the clause TBLPROPERTIES."""
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    return f"TBLPROPERTIES ({listed})"


_DELTA_PROPERTIES: Final = {
    # Of two writers that add the same row one has to fail.
    "delta.isolationLevel": "Serializable",
    # so that readers needn't know of deletion vectors
    "delta.enableDeletionVectors": "false",
}
_CHECK: Final = "spark.databricks.delta.retentionDurationCheck.enabled"
_LEAST_HOURS: Final = 168


class DeltaLakeFormat(LakeFormat):
    title = "Delta"
    extensions = "io.delta.sql.DeltaSparkSessionExtension"
    catalog_class = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
    packages = {  # noqa: RUF012 - a mapping that is only read
        "3.5": "io.delta:delta-spark_2.12:3.3.3",
        "4.0": "io.delta:delta-spark_4.0_2.13:4.4.0",
        "4.1": "io.delta:delta-spark_4.1_2.13:4.4.0",
    }
    conflicts = ("Concurrent", "MetadataChangedException", "ProtocolChangedException")

    def clauses(self, properties: Mapping[str, str]) -> str:
        return f"USING delta {text_of_properties({**properties, **_DELTA_PROPERTIES})}"

    def newest_version(self, session: SqlSession, table: str) -> int | None:
        (newest,) = session.sql(f"DESCRIBE HISTORY {table} LIMIT 1").collect()
        return int(newest.version)

    def compact(self, session: SqlSession, address: LakeAddress, name: str, sort: str | None, smallest: int) -> int:
        """Sorted files let a MERGE find the few that it has to read."""
        table = address.table(name)
        (detail,) = session.sql(f"DESCRIBE DETAIL {table}").collect()
        if detail.numFiles < max(smallest, 2):
            return 0
        (found,) = session.sql(f"OPTIMIZE {table}" + ("" if sort is None else f" ZORDER BY (`{sort}`)")).collect()
        return int(found.metrics.numFilesRemoved)

    def expire(self, session: SqlSession, address: LakeAddress, name: str, before: datetime, retained: int) -> int:  # noqa: ARG002 - VACUUM knows hours only
        hours = max(0.0, (datetime.now(timezone.utc) - before).total_seconds() / 3600)
        if hours < _LEAST_HOURS and session.conf.get(_CHECK, "true") != "false":
            raise ConfigurationError(
                f"Delta keeps {_LEAST_HOURS} hours at least, because who reads or writes may need a file so long: say "
                f"--older-than 7d or more, or set {_CHECK}=false if nothing runs that long"
            )
        vacuum = f"VACUUM {address.table(name)} RETAIN {hours:.6f} HOURS"
        removed = session.sql(f"{vacuum} DRY RUN").count()
        session.sql(vacuum).collect()
        return int(removed)


_ICEBERG_PROPERTIES: Final = {
    "format-version": "2",
    # Of two writers that add the same row one has to fail: a MERGE that isn't serializable would add it twice.
    "write.merge.isolation-level": "serializable",
    "write.merge.mode": "copy-on-write",
    "write.parquet.compression-codec": "zstd",
}


class IcebergLakeFormat(LakeFormat):
    title = "Iceberg"
    extensions = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
    catalog_class = "org.apache.iceberg.spark.SparkCatalog"
    packages = {  # noqa: RUF012 - a mapping that is only read
        "3.5": "org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.12.0",
        "4.0": "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.11.0",
        "4.1": "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
    }
    conflicts = ("ValidationException", "CommitFailedException", "CommitStateUnknownException")

    def clauses(self, properties: Mapping[str, str]) -> str:
        return f"USING iceberg {text_of_properties({**properties, **_ICEBERG_PROPERTIES})}"

    def newest_version(self, session: SqlSession, table: str) -> int | None:
        found = session.sql(f"SELECT snapshot_id FROM {table}.refs WHERE name = 'main'").collect()  # noqa: S608 - ours
        return int(found[0][0]) if found else None

    def compact(self, session: SqlSession, address: LakeAddress, name: str, sort: str | None, smallest: int) -> int:
        """Sorted files let a MERGE find the few that it has to read."""
        strategy = "" if sort is None else f", strategy => 'sort', sort_order => '{sort} ASC NULLS LAST'"
        arguments = f"table => '{_place(address, name)}'{strategy}"
        options = f"options => map('min-input-files', '{smallest}')"
        found = _call(session, address, "rewrite_data_files", f"{arguments}, {options}")
        _call(session, address, "rewrite_manifests", f"table => '{_place(address, name)}'")
        return int(found.rewritten_data_files_count)

    def expire(self, session: SqlSession, address: LakeAddress, name: str, before: datetime, retained: int) -> int:
        moment = before.astimezone(timezone.utc).strftime("%Y-%m-%d %H:%M:%S.%f")
        arguments = f"older_than => TIMESTAMP '{moment} UTC', retain_last => {retained}"
        found = _call(session, address, "expire_snapshots", f"table => '{_place(address, name)}', {arguments}")
        return int(found.deleted_data_files_count)


def _call(session: SqlSession, address: LakeAddress, procedure: str, arguments: str) -> Any:
    (row,) = session.sql(f"CALL `{address.catalog}`.system.{procedure}({arguments})").collect()
    return row


def _place(address: LakeAddress, name: str) -> str:
    return ".".join((*address.namespace, name))


_FORMATS: Final[dict[str, LakeFormat]] = {ICEBERG: IcebergLakeFormat(), DELTA: DeltaLakeFormat()}


def format_of(address: LakeAddress) -> LakeFormat:
    """Return the format of a lake's tables."""
    return _FORMATS[address.format]
