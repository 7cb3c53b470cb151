"""Branches of Delta tables: shallow clones beside the table, `t__fix`, which have its files and a log of their own.

Delta has no tags: a branch is made from a version, and the version's number is its tag. A merge writes the branch's
rows into main as one commit, which is the next one behind the version that main has to be at, or fails.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Final
from uuid import uuid4

from headwater.versions.branches.delta_commits import (
    GuardedCommit,
    RestoredFiles,
    call_with_defaults,
    has_identities,
    has_same_columns,
    newest,
    path_of,
)
from headwater.versions.branches.format_branches import FormatBranches
from headwater.versions.branches.model import (
    Branch,
    BranchError,
    ExpiryRisk,
    MainMove,
    MainMovedError,
    MainRollBack,
    MoveKind,
)
from headwater.versions.spark_tables import find_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PROPERTY: Final = "headwater.branch"
_BETWEEN: Final = "__"


class DeltaBranches(FormatBranches):
    format: ClassVar[str] = "delta"

    def look(self) -> None:
        self._log = self.loaded.table.deltaLog()
        self._snapshot = newest(self._log)

    @property
    def generation(self) -> str | None:
        return str(self._snapshot.metadata().id())

    @property
    def location(self) -> str:
        return str(self._log.dataPath().toString())

    def main_head(self) -> int | None:
        return int(self._snapshot.version())

    def tagged_snapshot(self, tag: str) -> int:
        newest = int(self._snapshot.version())
        if not tag.isdecimal() or int(tag) > newest:
            raise BranchError(
                f"Delta has no tags, and {tag!r} is no version of {self.name}: name one by its number, 0 to {newest}"
            )
        return int(tag)

    def branches(self) -> Sequence[Branch]:
        last = str(self.loaded.identifier.name())
        levels = self.loaded.identifier.namespace()
        names = [str(each.name()) for each in self.loaded.catalog.listTables(levels)]
        found = (self._branch(name) for name in sorted(names) if name.startswith(f"{last}{_BETWEEN}"))
        return [branch for branch in found if branch is not None]

    def create(self, branch: Branch) -> None:
        if not re.fullmatch(r"\w+", branch.name, re.ASCII):
            raise BranchError(
                f"a branch of a Delta table can't be called {branch.name!r}, since it is a table beside it: take "
                "letters, digits and _"
            )
        assert branch.created_at is not None  # noqa: S101 - made by the caller
        said = {
            "": branch.name,
            ".of": self.generation,
            ".tag": branch.tag,
            ".snapshot": branch.tagged_snapshot,
            ".created": branch.created_at.isoformat(),
        }
        known = {key: value for key, value in said.items() if value is not None}
        properties = ", ".join(f"'{_PROPERTY}{key}' = '{value}'" for key, value in known.items())
        self.spark.sql(
            f"CREATE TABLE {self.name_of(branch)} SHALLOW CLONE {self.name} "
            f"VERSION AS OF {branch.tagged_snapshot} TBLPROPERTIES ({properties})"
        )

    def delete(self, branch: Branch) -> None:
        self.spark.sql(f"DROP TABLE {self.name_of(branch)}")

    def plan_move(self, branch: Branch) -> MainMove:
        main = self.main_head()
        is_unchanged = branch.head == 0
        kind = MoveKind.RESTORE if is_unchanged else MoveKind.COPY
        own = () if branch.tagged_snapshot is None or main is None else range(main, branch.tagged_snapshot, -1)
        if is_unchanged and not own:
            return MainMove(branch, MoveKind.NOTHING, main, main)
        if kind is MoveKind.COPY and has_identities(self._snapshot.metadata()):
            raise BranchError(
                f"{self.name} has a column whose numbers Delta gives itself (GENERATED … AS IDENTITY), so no rows of "
                "another table can be copied into it: correct main by MERGE, UPDATE and DELETE"
            )
        return MainMove(branch, kind, main, None, tuple(own), parent=main)

    def move_main(self, move: MainMove, mark: str = "") -> MainMove:
        if move.kind is MoveKind.NOTHING:
            return move

        def commit(guarded: GuardedCommit, mark: str) -> int:
            if move.kind is MoveKind.RESTORE:
                assert move.branch.tagged_snapshot is not None  # noqa: S101 - it was planned by it
                return guarded.restore(move.branch.tagged_snapshot, mark)
            clone = self._clone_snapshot(move.branch)
            if int(clone.version()) != move.branch.head:
                raise MainMovedError(f"the branch {move.branch.name} of {self.name} has got another commit: try again")
            return guarded.overwrite(clone, self.name_of(move.branch), mark)

        return replace(move, snapshot=self._commit(commit, move.previous, mark))

    def unreadable(self, snapshot: int) -> str | None:
        newest_version = int(self._snapshot.version())
        if not 0 <= snapshot <= newest_version:
            return f"there is no such version: name one by its number, 0 to {newest_version}"
        try:
            then = call_with_defaults(self._log, "getSnapshotAt", snapshot)
        except Exception as e:
            if not _is_of_java(e):
                raise
            return "the log doesn't have it any more, since its retention is over: DESCRIBE HISTORY shows what it has"
        files = RestoredFiles(self.spark, self._log, self._snapshot, then)
        missing = next(filter(None, map(files.missing, files.added())), None)
        return None if missing is None else f"VACUUM has deleted files of it, such as {missing}"

    def roll_back(self, to: int, expected: int | None, mark: str = "") -> MainRollBack:
        if problem := self.unreadable(to):
            raise BranchError(f"{self.name} can't go back to {to}: {problem}")
        version = self._commit(lambda guarded, mark: guarded.restore(to, mark), expected, mark)
        return MainRollBack(to, expected, version, expected)

    def marked_snapshot(self, previous: int | None, mark: str) -> int | None:
        self.look()
        version = (-1 if previous is None else previous) + 1
        if version > int(self._snapshot.version()):
            return None
        return version if _info(self._read(version)).get("userMetadata") == mark else None

    def _commit(self, commit: Callable[[GuardedCommit, str], int], expected: int | None, mark: str) -> int:
        """Commit once, or raise a MainMovedError if another commit was faster."""
        mark = mark or f"headwater {uuid4()}"
        guarded = GuardedCommit(self.spark, self.name, self.loaded, expected)
        try:
            version = commit(guarded, mark)
        except Exception as e:
            if not hasattr(e, "java_exception"):  # of py4j's errors
                raise
            done, now = self.marked_snapshot(expected, mark), self.main_head()
            if done is None and now == expected:
                raise
            if done is None:
                raise MainMovedError.of(self.name, now, expected) from e
            version = done
        self.look()
        self.spark.sql(f"REFRESH TABLE {self.name}")
        return version

    def has_changed_columns(self, branch: Branch) -> bool:
        """The clone has the columns that main had, and those that it got itself."""
        main, log = self._snapshot.metadata(), self._clone_log(branch)
        known = (newest(log), call_with_defaults(log, "getSnapshotAt", 0))
        return not any(has_same_columns(main, each.metadata()) for each in known)

    def _clone_snapshot(self, branch: Branch) -> Any:
        return newest(self._clone_log(branch))

    def _clone_log(self, branch: Branch) -> Any:
        found = find_table(self.spark, self.name_of(branch))
        if found is None:
            raise BranchError(f"{self.name} has no branch {branch.name!r} any more")
        return found.table.deltaLog()

    def forget_former_main(self, move: MainMove) -> None:
        """Its versions stay in the log, until VACUUM and the log's retention take them."""

    def expiry_risks(self, older_than: datetime) -> Sequence[ExpiryRisk]:
        """VACUUM of the table deletes files that it has removed before a time, and knows nothing of clones."""
        limit = int(older_than.timestamp() * 1000)
        gone = self._paths(self._snapshot.tombstones(), lambda file: int(file.delTimestamp()) < limit)
        risks = []
        for branch in self.branches():
            loaded = find_table(self.spark, self.name_of(branch))
            if loaded is None:
                continue
            log = loaded.table.deltaLog()
            place = str(log.dataPath().toString())
            needed = {path_of(place, str(file.path())) for file in newest(log).allFiles().collectAsList()}
            if lacking := needed & gone:
                text = (
                    f"its newest version needs {len(lacking)} of the files that VACUUM of {self.name} deletes: keep "
                    "them longer, or rewrite the branch's rows (INSERT OVERWRITE) first"
                )
                risks.append(ExpiryRisk(branch.name, branch.head, text))
        return risks

    def unreadable_after(self, snapshots: Collection[int], older_than: datetime) -> set[int]:
        """A version can be read with all of its files: those that main has now, or removed later than that."""
        limit = int(older_than.timestamp() * 1000)
        kept = self._paths(self._snapshot.allFiles())
        kept |= self._paths(self._snapshot.tombstones(), lambda file: int(file.delTimestamp()) >= limit)
        return {number for number in snapshots if not self._has_files(number, kept)}

    def _has_files(self, version: int, kept: set[str]) -> bool:
        try:
            then = call_with_defaults(self._log, "getSnapshotAt", version)
        except Exception as e:
            if not _is_of_java(e):
                raise
            return False  # the log doesn't have it any more
        return self._paths(then.allFiles()) <= kept

    def _paths(self, files: Any, is_meant: Callable[[Any], bool] = lambda _: True) -> set[str]:
        return {path_of(self.location, str(file.path())) for file in files.collectAsList() if is_meant(file)}

    def name_of(self, branch: Branch) -> str:
        table, _, last = self.name.rpartition(".")
        return f"{table}.`{last.strip('`')}{_BETWEEN}{branch.name}`".lstrip(".")

    def own_snapshots(self, branch: Branch) -> Sequence[int]:
        return range(1, (branch.head or 0) + 1)  # 0 is the clone itself

    def table_of(self, branch: Branch) -> FormatBranches | None:
        name = self.name_of(branch)
        found = find_table(self.spark, name)
        return None if found is None else DeltaBranches(self.spark, name, found)

    def reset(self, branch: Branch, snapshot: int) -> None:
        loaded = find_table(self.spark, self.name_of(branch))
        if loaded is not None and int(newest(loaded.table.deltaLog()).version()) != snapshot:
            self.spark.sql(f"RESTORE TABLE {self.name_of(branch)} TO VERSION AS OF {snapshot}")

    def _branch(self, table: str) -> Branch | None:
        name = table[len(str(self.loaded.identifier.name())) + len(_BETWEEN) :]
        loaded = find_table(self.spark, self.name_of(Branch(name, None, None, None, None)))
        if loaded is None or loaded.provider != self.format:
            return None
        head = newest(loaded.table.deltaLog())
        said = dict(_java_map(head.metadata().configuration()))
        if said.get(f"{_PROPERTY}.of") != self.generation or said.get(_PROPERTY, "").lower() != name.lower():
            return None
        created = datetime.fromisoformat(said[f"{_PROPERTY}.created"])
        tag = said.get(f"{_PROPERTY}.tag")
        return Branch(said[_PROPERTY], tag, int(said[f"{_PROPERTY}.snapshot"]), created, int(head.version()))

    def _read(self, version: int) -> str:
        """Return a commit's file in the log."""
        inside: Any = self.spark
        jvm = inside._jvm  # noqa: SLF001
        path = jvm.org.apache.hadoop.fs.Path(self._log.logPath(), f"{version:020d}.json")
        stream = path.getFileSystem(self._log.newDeltaHadoopConf()).open(path)
        try:
            return str(jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()


def _is_of_java(error: Exception) -> bool:
    """Return whether an error came from the JVM: py4j's own, or what pyspark made of it."""
    return getattr(error, "java_exception", None) is not None or getattr(error, "_origin", None) is not None


def drop_clone(spark: SparkSession, table: str, branch: str) -> None:
    """Drop a branch whose table was dropped, or dropped and made again: it belongs to no table then."""
    parent, _, last = table.rpartition(".")
    name = f"{parent}.`{last.strip('`')}{_BETWEEN}{branch}`".lstrip(".")
    found = find_table(spark, name)
    if found is None or found.provider != DeltaBranches.format:
        return
    if dict(_java_map(newest(found.table.deltaLog()).metadata().configuration())).get(_PROPERTY) == branch:
        spark.sql(f"DROP TABLE {name}")


def _java_map(scala_map: Any) -> Iterator[tuple[str, str]]:
    entries = scala_map.iterator()
    while entries.hasNext():
        pair = entries.next()
        yield str(pair._1()), str(pair._2())  # noqa: SLF001 - Scala's


def _info(text: str) -> dict[str, Any]:
    """Return what a commit's file in the log says of the commit."""
    actions = (json.loads(line) for line in text.splitlines() if line.strip())
    return next((action["commitInfo"] for action in actions if "commitInfo" in action), {})
