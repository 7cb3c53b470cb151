"""Branches of Delta tables: shallow clones beside the table, `t__fix`, which have its files and a log of their own.

Delta has no tags: a branch is made from a version, and the version's number is its tag. A merge writes the branch's
rows into main as one commit. Delta refuses that commit if another one comes while it is made, and what came just before
is seen in the log: then main is restored.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, ClassVar, Final
from urllib.parse import unquote
from uuid import uuid4

from headwater.versions.aligned.formats.protocol import session_settings
from headwater.versions.branches.format_branches import FormatBranches
from headwater.versions.branches.model import (
    Branch,
    BranchError,
    ExpiryRisk,
    MainMove,
    MainMovedError,
    MoveKind,
)
from headwater.versions.spark_tables import find_table

_PROPERTY: Final = "headwater.branch"
_MARK: Final = "spark.databricks.delta.commitInfo.userMetadata"
_BETWEEN: Final = "__"


class DeltaBranches(FormatBranches):
    format: ClassVar[str] = "delta"

    def look(self) -> None:
        self._log = self.loaded.table.deltaLog()
        self._snapshot = _newest(self._log)

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
        properties = ", ".join(f"'{_PROPERTY}{key}' = '{value}'" for key, value in said.items())
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
        return MainMove(branch, kind, main, None, tuple(own))

    def move_main(self, move: MainMove) -> MainMove:
        if move.kind is MoveKind.NOTHING:
            return move
        self.look()
        if self.main_head() != move.previous:
            raise MainMovedError(
                f"main of {self.name} is at {self.main_head()}, and not at {move.previous} any more: look at what has "
                "come, and merge again if it may go"
            )
        mark = f"headwater merge {uuid4()}"
        # A dynamic overwrite would leave the partitions of main that the branch doesn't have.
        with session_settings(self.spark, {_MARK: mark, "spark.sql.sources.partitionOverwriteMode": "static"}):
            self._write(move)
        return self._checked(move, mark)

    def _write(self, move: MainMove) -> None:
        if move.kind is MoveKind.RESTORE:
            self.spark.sql(f"RESTORE TABLE {self.name} TO VERSION AS OF {move.branch.tagged_snapshot}")
            return
        name = self.name_of(move.branch)
        theirs, ours = self._columns(name), self._columns(self.name)
        if theirs == ours:
            self.spark.sql(f"INSERT OVERWRITE TABLE {self.name} SELECT * FROM {name}")  # noqa: S608 - the user's own
            return
        partitions = self.spark.sql(f"DESCRIBE DETAIL {name}").collect()[0]["partitionColumns"]
        writer = self.spark.table(name).write.format("delta").mode("overwrite").option("overwriteSchema", "true")
        writer.partitionBy(*partitions).saveAsTable(self.name)

    def _columns(self, name: str) -> list[tuple[str, str]]:
        return [(field.name, field.dataType.json()) for field in self.spark.table(name).schema]

    def _checked(self, move: MainMove, mark: str) -> MainMove:
        """Return what the move did; if a commit came between that changed rows, take it back."""
        self.look()
        assert move.previous is not None  # noqa: S101 - each table of Delta has a version
        commits = {number: _actions(self._read(number)) for number in self._numbers_after(move.previous)}
        own = max(number for number, actions in commits.items() if _info(actions).get("userMetadata") == mark)
        others = [number for number in commits if number < own and _changes_rows(commits[number])]
        if not others:
            return MainMove(move.branch, move.kind, move.previous, own, move.lost_snapshots)
        if self.main_head() == own:
            self.spark.sql(f"RESTORE TABLE {self.name} TO VERSION AS OF {own - 1}")
            then = f"the merge was taken back, and it is as at {own - 1} again"
        else:
            then = f"the merge, its version {own}, stands, since others have committed after it"
        raise MainMovedError(f"main of {self.name} got {others[0]} while the branch was merged: {then}")

    def forget_former_main(self, move: MainMove) -> None:
        """Its versions stay in the log, until VACUUM and the log's retention take them."""

    def expiry_risks(self, older_than: datetime) -> Sequence[ExpiryRisk]:
        """VACUUM of the table deletes files that it has removed before a time, and knows nothing of clones."""
        limit = int(older_than.timestamp() * 1000)
        gone = {
            _path_of(self.location, file.path())
            for file in self._snapshot.tombstones().collectAsList()
            if int(file.delTimestamp()) < limit
        }
        risks = []
        for branch in self.branches():
            loaded = find_table(self.spark, self.name_of(branch))
            if loaded is None:
                continue
            log = loaded.table.deltaLog()
            place = str(log.dataPath().toString())
            needed = {_path_of(place, file.path()) for file in _newest(log).allFiles().collectAsList()}
            if lacking := needed & gone:
                text = (
                    f"its newest version needs {len(lacking)} of the files that VACUUM of {self.name} deletes: keep "
                    "them longer, or rewrite the branch's rows (INSERT OVERWRITE) first"
                )
                risks.append(ExpiryRisk(branch.name, branch.head, text))
        return risks

    def name_of(self, branch: Branch) -> str:
        table, _, last = self.name.rpartition(".")
        return f"{table}.`{last.strip('`')}{_BETWEEN}{branch.name}`".lstrip(".")

    def _branch(self, table: str) -> Branch | None:
        name = table[len(str(self.loaded.identifier.name())) + len(_BETWEEN) :]
        loaded = find_table(self.spark, self.name_of(Branch(name, None, None, None, None)))
        if loaded is None or loaded.provider != self.format:
            return None
        newest = _newest(loaded.table.deltaLog())
        said = dict(_java_map(newest.metadata().configuration()))
        if said.get(f"{_PROPERTY}.of") != self.generation or said.get(_PROPERTY, "").lower() != name.lower():
            return None
        created = datetime.fromisoformat(said[f"{_PROPERTY}.created"])
        tag = said[f"{_PROPERTY}.tag"]
        return Branch(said[_PROPERTY], tag, int(said[f"{_PROPERTY}.snapshot"]), created, int(newest.version()))

    def _numbers_after(self, version: int) -> range:
        return range(version + 1, int(self._snapshot.version()) + 1)

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


def _newest(log: Any) -> Any:
    """Return the newest snapshot of a log. What its method takes by default differs by release."""
    defaults = sorted(name for name in dir(log) if name.startswith("update$default$"))
    return log.update(*(getattr(log, default)() for default in defaults))


def _java_map(scala_map: Any) -> Iterator[tuple[str, str]]:
    entries = scala_map.iterator()
    while entries.hasNext():
        pair = entries.next()
        yield str(pair._1()), str(pair._2())  # noqa: SLF001 - Scala's


def _path_of(place: str, path: str) -> str:
    """Return where a file is, by its path in a log, which may be relative to the table."""
    text = unquote(str(path))
    return text if ":" in text.partition("/")[0] or text.startswith("/") else f"{place}/{text}"


def _actions(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def _info(actions: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return next((action["commitInfo"] for action in actions if "commitInfo" in action), {})


def _changes_rows(actions: Sequence[dict[str, Any]]) -> bool:
    """Return whether a commit added or removed rows, or changed columns: all but a compaction, say."""
    for action in actions:
        if "metaData" in action:
            return True
        file = action.get("add") or action.get("remove")
        if file is not None and file.get("dataChange", True):
            return True
    return False
