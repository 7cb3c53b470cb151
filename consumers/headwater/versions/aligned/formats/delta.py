"""Delta tables: versions are numbers without holes, and each is a file of actions in the table's log."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from headwater.versions.aligned.formats.protocol import (
    AlignableTable,
    CommitEffect,
    SourceCommit,
    UnalignableTableError,
    UnmarkedWriteError,
    WriteSearch,
    session_settings,
)
from headwater.versions.cuts import TableSnapshot

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from headwater.versions.spark_tables import CatalogTable

_APP: Final = "spark.databricks.delta.write.txnAppId"
_VERSION: Final = "spark.databricks.delta.write.txnVersion"
_FORGETS: Final = "spark.databricks.delta.write.txnVersion.autoReset.enabled"
_SECOND: Final = "txnVersion"
"""In Delta's error of a write that has the one setting without the other."""
_MOST: Final = 1_000
"""How many commits are remembered."""


class DeltaTable(AlignableTable):
    format: ClassVar[str] = "delta"

    def __init__(self, spark: SparkSession, name: str) -> None:
        super().__init__(spark, name)
        self._commits: Final[dict[int, _Commit]] = {}
        self._generation = ""
        self._version = -1
        self._log: Any = None
        self._snapshot: Any = None
        self._is_written = False
        """Whether the last marked write made a commit, of whichever table."""

    def look(self, loaded: CatalogTable) -> None:
        self._log, self._snapshot = loaded.table.deltaLog(), loaded.table.initialSnapshot()
        version, generation = int(self._snapshot.version()), str(self._snapshot.metadata().id())
        if generation != self._generation or version < self._version:
            self._commits.clear()
        self._version, self._generation = version, generation

    @property
    def generation(self) -> str:
        return self._generation

    def newest(self) -> int | None:
        return None if self._version < 0 else self._version

    def _commits_after(self, at: TableSnapshot) -> list[SourceCommit] | None:
        if at.snapshot > self._version:
            return None
        found = list(self._since(at.snapshot))
        if len(found) < self._version - at.snapshot:
            return None
        return [SourceCommit(commit.version, commit.effect, commit.operation, commit.restores) for commit in found]

    def additions(
        self,
        after: TableSnapshot,
        until: TableSnapshot,
        commits: Sequence[SourceCommit],
    ) -> DataFrame:
        """Read the files that commits added, as Delta's streams do: a later compaction may have replaced them."""
        from pyspark.sql import DataFrame as Rows  # noqa: PLC0415 - an extra

        self.check_generation(until)
        inside: Any = self.spark
        jvm = inside._jvm  # noqa: SLF001
        files = jvm.java.util.ArrayList()
        for commit in commits:
            if commit.effect is CommitEffect.ADDS:
                for line in self._added_by(commit.snapshot):
                    files.add(jvm.org.apache.spark.sql.delta.actions.Action.fromJson(line))
        several = jvm.org.apache.spark.api.python.PythonUtils.toSeq(files)
        purpose = jvm.scala.Option.apply(f"headwater changes {after.snapshot + 1} {until.snapshot}")
        return Rows(self._log.createDataFrame(self._columns_at(until.snapshot), several, False, purpose), inside)

    def stream_options(self, after: int) -> dict[str, str]:
        if self._version == after:
            raise UnalignableTableError(
                f"{self.name}@{after} is its newest version, and a stream of Delta can't begin at one that isn't there "
                "yet: wait for the next commit, or use an aligned query"
            )
        return {"startingVersion": str(after + 1)}

    def write_marked(self, mark: str, write: Callable[[], object]) -> None:
        """Delta skips a write whose transaction a table has, so it is made to forget the number with the first commit:
        then it refuses the second one, which it would pass over in silence."""
        app, _, number = mark.rpartition("/")
        self._is_written = False
        with session_settings(self.spark, {_APP: app, _VERSION: number, _FORGETS: "true"}):
            try:
                write()
            except Exception as e:
                if self.spark.conf.get(_VERSION, None) is None and _SECOND in str(e):
                    raise UnmarkedWriteError(
                        f"{self.name}: more than one commit was to carry the barrier {mark}"
                    ) from e
                raise
            finally:
                self._is_written = self.spark.conf.get(_VERSION, None) is None

    def find_mark(self, mark: str, after: int | None) -> WriteSearch:
        """Delta itself skips a transaction that a table has seen already, so that it is certain without the log. It
        keeps the newest one of each writer with the table's state."""
        app, _, number = mark.rpartition("/")
        if after is None:
            newest = self._snapshot.transactions().get(app)
            is_there = newest.isDefined() and int(newest.get()) >= int(number)
            return WriteSearch(self._version if is_there else None, is_certain=True)
        found = (commit.version for commit in self._since(after) if (app, int(number)) in commit.transactions)
        return WriteSearch(next(found, None), is_certain=True)

    def fault_of_write(self, mark: str, after: int | None) -> str | None:
        if self._is_written and self.find_mark(mark, after).snapshot is None:
            return f"its newest version carries no barrier {mark}, and another table does"
        return None

    def _since(self, version: int) -> Iterator[_Commit]:
        """Yield the commits after a version, up to the first one that the log doesn't have any more."""
        for number in range(version + 1, self._version + 1):
            found = self._commits.get(number)
            if found is None:
                text = self._read(number)
                if text is None:
                    return
                found = self._commits[number] = _parse(number, text)
                if len(self._commits) > _MOST:
                    del self._commits[min(self._commits)]
            yield found

    def _added_by(self, version: int) -> Iterator[str]:
        """Yield what the log says of each file that a commit added."""
        text = self._read(version)
        if text is None:
            raise UnalignableTableError(
                f"the log of {self.name} has no version {version} any more: let it be kept "
                "(delta.logRetentionDuration) as long as the slowest job of the group may lag behind, or start the job "
                "anew, with another checkpoint"
            )
        for line in text.splitlines():
            if line.strip() and _adds_rows(json.loads(line)):
                yield line

    def _columns_at(self, version: int) -> Any:
        """Return a snapshot with the columns of a version: the newest one, if nothing has changed them since."""
        later = list(self._since(version))
        if len(later) == self._version - version and not any(commit.changes_columns for commit in later):
            return self._snapshot
        log, name = self._log, "getSnapshotAt"
        defaults = sorted(name_ for name_ in dir(log) if name_.startswith(f"{name}$default$"))
        return getattr(log, name)(version, *(getattr(log, default)() for default in defaults))

    def _read(self, version: int) -> str | None:
        """Return a commit's file in the log; None if it isn't there any more."""
        inside: Any = self.spark
        jvm = inside._jvm  # noqa: SLF001
        path = jvm.org.apache.hadoop.fs.Path(self._log.logPath(), f"{version:020d}.json")
        files = path.getFileSystem(self._log.newDeltaHadoopConf())
        if not files.exists(path):
            return None
        stream = files.open(path)
        try:
            return str(jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()


@dataclass(frozen=True)
class _Commit:
    version: int
    operation: str
    effect: CommitEffect
    changes_columns: bool
    transactions: frozenset[tuple[str, int]]
    restores: int | None


def _parse(version: int, text: str) -> _Commit:
    actions = [json.loads(line) for line in text.splitlines() if line.strip()]
    removes = any("remove" in action and action["remove"].get("dataChange", True) for action in actions)
    info: dict[str, object] = next((action["commitInfo"] for action in actions if "commitInfo" in action), {})
    transactions = frozenset(
        (action["txn"]["appId"], int(action["txn"]["version"])) for action in actions if "txn" in action
    )
    adds = any(map(_adds_rows, actions))
    effect = CommitEffect.CHANGES if removes else CommitEffect.ADDS if adds else CommitEffect.KEEPS
    changes_columns = any("metaData" in action or "protocol" in action for action in actions)
    operation = str(info.get("operation", "UNKNOWN"))
    return _Commit(version, operation, effect, changes_columns, transactions, _restored(operation, info))


def _restored(operation: str, info: Mapping[str, Any]) -> int | None:
    """Return the version that a commit restored; None for other commits, and where it was asked for by a time."""
    parameters: Mapping[str, Any] = info.get("operationParameters") or {}
    version = str(parameters.get("version")) if operation == "RESTORE" else ""
    return int(version) if version.isdecimal() else None


def _adds_rows(action: dict[str, Any]) -> bool:
    return "add" in action and bool(action["add"].get("dataChange", True))
