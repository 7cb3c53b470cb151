"""Delta tables: versions are numbers without holes, and each is a file of actions in the table's log."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import unquote

from headwater.versions.aligned.formats.protocol import (
    CommitEffect,
    SourceCommit,
    UnalignableTableError,
    WriteSearch,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_APP: Final = "spark.databricks.delta.write.txnAppId"
_VERSION: Final = "spark.databricks.delta.write.txnVersion"


class DeltaTables:
    name: ClassVar[str] = "delta"
    can_mark: ClassVar[bool] = True

    def generation(self, spark: SparkSession, table: str) -> str:
        return str(_detail(spark, table)["id"])

    def current(self, spark: SparkSession, table: str) -> int | None:
        rows = spark.sql(f"DESCRIBE HISTORY {table} LIMIT 1").select("version").collect()
        return int(rows[0]["version"]) if rows else None

    def commits_after(self, spark: SparkSession, table: str, snapshot: int) -> Sequence[SourceCommit] | None:
        log = _Log(spark, table)
        if log.read(snapshot) is None and self.current(spark, table) != snapshot:
            return None
        return [SourceCommit(each.version, each.effect, each.operation) for each in log.after(snapshot)]

    def state(self, spark: SparkSession, table: str, snapshot: int) -> DataFrame:
        return spark.sql(f"SELECT * FROM {table} VERSION AS OF {snapshot}")  # noqa: S608 - the user's own table

    def additions(
        self, spark: SparkSession, table: str, after: int, until: int, commits: Sequence[SourceCommit]
    ) -> DataFrame:
        """Read what each commit added. A table that keeps a change feed has it ready; of another one the files are
        read that a commit brought, each at its own version, as a later compaction may have replaced them."""
        if _detail(spark, table)["properties"].get("delta.enableChangeDataFeed") == "true":
            feed = spark.read.option("readChangeFeed", "true").option("startingVersion", after + 1)
            changes = feed.option("endingVersion", until).table(table).where("_change_type = 'insert'")
            added = [each.snapshot for each in commits if each.effect is CommitEffect.ADDS]
            return changes.where(changes["_commit_version"].isin(added)).drop(
                "_change_type", "_commit_version", "_commit_timestamp"
            )
        log = _Log(spark, table)
        parts = []
        for each in commits:
            if each.effect is CommitEffect.ADDS:
                commit = log.read(each.snapshot)
                if commit is None:
                    raise UnalignableTableError(_CLEANED.format(table=table, version=each.snapshot))
                rows = self.state(spark, table, each.snapshot)
                parts.append(rows.where(rows["_metadata.file_path"].isin(log.paths(commit))))
        if not parts:
            return self.state(spark, table, until).limit(0)
        return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), parts)

    def stream_options(self, spark: SparkSession, table: str, after: int) -> dict[str, str]:
        if self.current(spark, table) == after:
            raise UnalignableTableError(
                f"{table}@{after} is its newest version, and a stream of Delta can't begin at one that isn't there "
                "yet: wait for the next commit, or use an aligned query"
            )
        return {"startingVersion": str(after + 1)}

    def write_marked(self, spark: SparkSession, mark: str, write: Callable[[], object]) -> None:
        app, _, number = mark.rpartition("/")
        former = {key: spark.conf.get(key, None) for key in (_APP, _VERSION)}
        spark.conf.set(_APP, app)
        spark.conf.set(_VERSION, number)
        try:
            write()
        finally:
            for key, old in former.items():
                if old is None:
                    spark.conf.unset(key)
                else:
                    spark.conf.set(key, old)

    def find_mark(self, spark: SparkSession, table: str, mark: str, after: int | None) -> WriteSearch:
        app, _, number = mark.rpartition("/")
        log = _Log(spark, table)
        for each in log.after(-1 if after is None else after):
            if (app, int(number)) in each.transactions:
                return WriteSearch(each.version, is_certain=True)
        # Delta itself skips a transaction that a table has seen already.
        return WriteSearch(None, is_certain=True)


_CLEANED: Final = (
    "the log of {table} has no version {version} any more: let it be kept (delta.logRetentionDuration) as long as the "
    "slowest job of the group may lag behind, or start the job anew, with another checkpoint"
)


@dataclass(frozen=True)
class _Commit:
    version: int
    operation: str
    effect: CommitEffect
    added: tuple[str, ...]
    """Paths of files, as the log has them."""
    transactions: frozenset[tuple[str, int]]


class _Log:
    """The log of a table."""

    def __init__(self, spark: SparkSession, table: str) -> None:
        inside: Any = spark
        self._jvm = inside._jvm  # noqa: SLF001
        self._location = str(_detail(spark, table)["location"])
        path = self._jvm.org.apache.hadoop.fs.Path(self._location)
        self._files = path.getFileSystem(inside._jsparkSession.sessionState().newHadoopConf())  # noqa: SLF001

    def after(self, version: int) -> Iterator[_Commit]:
        while (found := self.read(version + 1)) is not None:
            yield found
            version += 1

    def read(self, version: int) -> _Commit | None:
        path = self._jvm.org.apache.hadoop.fs.Path(f"{self._location}/_delta_log/{version:020d}.json")
        if not self._files.exists(path):
            return None
        stream = self._files.open(path)
        try:
            text = self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8")
        finally:
            stream.close()
        return _parse(version, text)

    def paths(self, commit: _Commit) -> list[str]:
        """Return the files as Spark may name them: versions of it differ in whether they escape characters, and in how
        many slashes a local path begins with."""
        found = set()
        for each in commit.added:
            path = self._files.makeQualified(self._jvm.org.apache.hadoop.fs.Path(self._location, unquote(each)))
            for name in (str(path.toString()), str(path.toUri().toString())):
                found |= {name, name.replace("file:/", "file:///", 1)}
        return sorted(found)


def _parse(version: int, text: str) -> _Commit:
    actions = [json.loads(line) for line in text.splitlines() if line.strip()]
    added = tuple(each["add"]["path"] for each in actions if "add" in each and each["add"].get("dataChange", True))
    removes = any("remove" in each and each["remove"].get("dataChange", True) for each in actions)
    info: dict[str, object] = next((each["commitInfo"] for each in actions if "commitInfo" in each), {})
    transactions = frozenset((each["txn"]["appId"], int(each["txn"]["version"])) for each in actions if "txn" in each)
    effect = CommitEffect.CHANGES if removes else CommitEffect.ADDS if added else CommitEffect.KEEPS
    return _Commit(version, str(info.get("operation", "UNKNOWN")), effect, added, transactions)


def _detail(spark: SparkSession, table: str) -> Any:
    return spark.sql(f"DESCRIBE DETAIL {table}").collect()[0]
