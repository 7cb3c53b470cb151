"""Guarded commits of Delta tables: each is the next version behind an expected one, or isn't made.

Delta's own INSERT OVERWRITE and RESTORE begin at whatever version there is. `commitLarge`, by which RESTORE and CLONE
commit, never tries again behind another commit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from headwater.versions.aligned.formats.protocol import session_settings
from headwater.versions.branches.model import BranchError, MainMovedError
from headwater.versions.spark_tables import CatalogTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MARK: Final = "spark.databricks.delta.commitInfo.userMetadata"
_IDENTITY: Final = '"delta.identity.start"'
_LAST_COLUMN: Final = "delta.columnMapping.maxColumnId"
_FILE: Final = ("path", "deletionVector.storageType", "deletionVector.pathOrInlineDv", "deletionVector.offset")
"""What tells a file of a version from others, with the rows that were deleted in it."""


class GuardedCommit:
    """One commit of a table, begun at the version that it has to be at. A MainMovedError if it isn't there."""

    def __init__(self, spark: SparkSession, name: str, loaded: CatalogTable, expected: int | None) -> None:
        self._spark: Final = spark
        self._name: Final = name
        self._log: Final = loaded.table.deltaLog()
        inside: Any = spark
        self._jvm: Final = inside._jvm  # noqa: SLF001
        self._session: Final = inside._jsparkSession  # noqa: SLF001
        self._delta: Final = self._jvm.org.apache.spark.sql.delta
        self._transaction: Final = call_with_defaults(self._log, "startTransaction", loaded.table.catalogTable())
        now = int(self._transaction.readVersion())
        if now != expected:
            raise MainMovedError.of(name, now, expected)

    def restore(self, version: int, mark: str) -> int:
        """Commit that the table has the files and columns of one of its versions again. Return the new version."""
        now, then = self._transaction.snapshot(), call_with_defaults(self._log, "getSnapshotAt", version)
        self._delta.DeltaLog.assertRemovable(now)
        files, actions = RestoredFiles(self._spark, self._log, now, then), self._jvm.java.util.ArrayList()
        for file in files.added():
            if missing := files.missing(file):
                what = f"version {version} of {self._name} can't be restored"
                raise BranchError(f"{what}: VACUUM has deleted files of it, such as {missing}")
            actions.add(file)
        for file in files.removed():
            actions.add(file.remove())
        for action in _items(self._delta.DomainMetadataUtils.handleDomainMetadataForRestoreTable(then, now)):
            actions.add(action)
        schema = self._delta.IdentityColumn.copySchemaWithMergedHighWaterMarks(
            self._log, then.metadata().schema(), now.metadata().schema()
        )
        self._change_metadata(_metadata_with(then.metadata(), schema=schema.json()))
        operation = self._operation("Restore", self._jvm.scala.Option.apply(version), self._jvm.scala.Option.empty())
        return self._commit(self._jvm.scala.collection.JavaConverters.asScalaBuffer(actions), operation, mark)

    def overwrite(self, clone: Any, clone_name: str, mark: str) -> int:
        """Commit the rows and columns of a snapshot of a clone in place of the table's. Return the new version."""
        main, other = self._transaction.metadata(), clone.metadata()
        if not has_same_columns(main, other):
            self._change_metadata(_metadata_like(main, other))
        version = int(clone.version())
        rows: Any = self._spark.sql(f"SELECT * FROM {clone_name} VERSION AS OF {version}")  # noqa: S608
        empty = self._jvm.scala.Predef.Map().empty()
        mode = self._jvm.org.apache.spark.sql.SaveMode.Overwrite
        options = self._delta.DeltaOptions(empty, self._session.sessionState().conf())
        command = self._companion("commands.WriteIntoDelta")
        given = (self._log, mode, options, other.partitionColumns(), empty, rows._jdf)  # noqa: SLF001
        write = call_with_defaults(command, "apply", *given)
        # A dynamic overwrite would leave the partitions of main that the branch doesn't have.
        with session_settings(self._spark, {"spark.sql.sources.partitionOverwriteMode": "static"}):
            written = call_with_defaults(write, "writeAndReturnCommitData", self._transaction, self._session)
        return self._commit(written.actions(), self._operation("Write", mode), mark)

    def _commit(self, actions: Any, operation: Any, mark: str) -> int:
        from headwater.listeners.capture.formats.delta.outside_commits import (  # noqa: PLC0415 - it is for drivers
            leave_to_committer,
        )

        leave_to_committer(str(self._transaction.txnId()))
        empty = self._jvm.scala.Predef.Map().empty()
        nothing = self._jvm.scala.Option.empty()
        with session_settings(self._spark, {_MARK: mark}):
            done = self._transaction.commitLarge(self._session, actions.iterator(), nothing, operation, empty, empty)
        return int(done._1())  # noqa: SLF001 - Scala's

    def _change_metadata(self, metadata: Any) -> None:
        if not metadata.equals(self._transaction.metadata()):
            call_with_defaults(self._transaction, "updateMetadata", metadata)

    def _operation(self, name: str, *given: Any) -> Any:
        return call_with_defaults(self._companion(f"DeltaOperations${name}"), "apply", *given)

    def _companion(self, name: str) -> Any:
        found = self._delta
        for part in f"{name}$".split("."):
            found = getattr(found, part)
        return getattr(found, "MODULE$")


class RestoredFiles:
    """The files in which two versions of a table differ."""

    def __init__(self, spark: SparkSession, log: Any, now: Any, then: Any) -> None:
        self._spark: Final = spark
        self._log: Final = log
        self._like: Final = now.allFiles()
        self._now: Final = self._frame(now.allFiles())
        self._then: Final = self._frame(then.allFiles())

    def added(self) -> Iterator[Any]:
        """Yield the files of `then` that `now` lacks, or has with other rows deleted."""
        return _files(_without(self._then, self._now), self._like)

    def removed(self) -> Iterator[Any]:
        """Yield the files of `now` that `then` lacks, or has with other rows deleted."""
        return _files(_without(self._now, self._then), self._like)

    def missing(self, file: Any) -> str | None:
        """Return the file on the disk that isn't there, of a data file and of that with its deleted rows."""
        inside: Any = self._spark
        place, new_path = self._log.dataPath(), inside._jvm.org.apache.hadoop.fs.Path  # noqa: SLF001
        paths, deleted = [new_path(path_of(str(place.toString()), str(file.path())))], file.deletionVector()
        if deleted is not None and deleted.isOnDisk():
            paths.append(deleted.absolutePath(place))
        files = paths[0].getFileSystem(self._log.newDeltaHadoopConf())
        return next((str(path) for path in paths if not files.exists(path)), None)

    def _frame(self, files: Any) -> DataFrame:
        from pyspark.sql import DataFrame  # noqa: PLC0415 - an extra

        return DataFrame(files.toDF(), self._spark)


def has_same_columns(one: Any, two: Any) -> bool:
    """Return whether the metadata of two snapshots have the same columns and partitions."""
    return bool(one.schemaString() == two.schemaString() and one.partitionColumns().equals(two.partitionColumns()))


def has_identities(metadata: Any) -> bool:
    """Return whether Delta gives the numbers of a column itself, so that no other rows can be written."""
    return _IDENTITY in str(metadata.schemaString())


def newest(log: Any) -> Any:
    """Return the newest snapshot of a log."""
    return call_with_defaults(log, "update")


def path_of(place: str, path: str) -> str:
    """Return where a file is, by its path in a log, which may be relative to the table."""
    text = unquote(path)
    return text if ":" in text.partition("/")[0] or text.startswith("/") else f"{place}/{text}"


def call_with_defaults(target: Any, method: str, *given: Any) -> Any:
    """Call a method of Scala with what it takes by default behind what is given: that differs by release."""
    prefix = f"{method}$default$"
    places = sorted(int(name.removeprefix(prefix)) for name in dir(target) if name.startswith(prefix))
    defaults = [getattr(target, f"{prefix}{place}")() for place in places if place > len(given)]
    return getattr(target, method)(*given, *defaults)


def _metadata_with(metadata: Any, **changed: Any) -> Any:
    schema = changed.get("schema", metadata.schemaString())
    partitions = changed.get("partitions", metadata.partitionColumns())
    configuration = changed.get("configuration", metadata.configuration())
    kept = (metadata.id(), metadata.name(), metadata.description(), metadata.format())
    return metadata.copy(*kept, schema, partitions, configuration, metadata.createdTime())


def _metadata_like(main: Any, other: Any) -> Any:
    """Return main's metadata with the columns of another table, and what tells how these are mapped."""
    configuration, found = main.configuration(), other.configuration().get(_LAST_COLUMN)
    if found.isDefined():
        configuration = configuration.updated(_LAST_COLUMN, found.get())
    parts = {"schema": other.schemaString(), "partitions": other.partitionColumns(), "configuration": configuration}
    return _metadata_with(main, **parts)


def _without(files: DataFrame, others: DataFrame) -> DataFrame:
    """Return the files of one version that another one doesn't have, as those that change rows."""
    from pyspark.sql import functions as f  # noqa: PLC0415 - an extra

    names = [f"key_{place}" for place in range(len(_FILE))]
    keys = others.select(*(f.col(column).alias(name) for column, name in zip(_FILE, names, strict=True)))
    conditions = [f.col(column).eqNullSafe(f.col(name)) for column, name in zip(_FILE, names, strict=True)]
    return files.join(keys, conditions, "left_anti").withColumn("dataChange", f.lit(True))


def _files(frame: DataFrame, like: Any) -> Iterator[Any]:
    """Yield the rows of a frame as Delta's own actions, which another dataset consists of."""
    inside: Any = frame
    found = getattr(inside._jdf, "as")(like.encoder()).toLocalIterator()  # noqa: SLF001
    while found.hasNext():
        yield found.next()


def _items(sequence: Any) -> Iterator[Any]:
    found = sequence.iterator()
    while found.hasNext():
        yield found.next()
