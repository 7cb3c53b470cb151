"""Branches of Paimon tables: directories with snapshots, schemas and tags of their own, over the same data files.

Main takes a branch's rows by its next snapshot, which consists of the files of the branch's. Paimon's own fast-forward
deletes snapshots of main instead, and passes over what others commit meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timezone
from typing import Any, ClassVar

from headwater.versions.aligned.formats.paimon import files_of
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
from headwater.versions.branches.paimon_commits import PaimonCommits, next_number, numbers_of


class PaimonBranches(FormatBranches):
    format: ClassVar[str] = "paimon"

    def look(self) -> None:
        self._table = self.loaded.reload().table.getTable()
        self._snapshots = self._table.snapshotManager()
        self._commits = PaimonCommits(self.spark, self.name, self._table)

    @property
    def generation(self) -> str | None:
        return str(self._table.schemaManager().schema(0).timeMillis())

    @property
    def location(self) -> str:
        return str(self._table.location().toString())

    def main_head(self) -> int | None:
        return self._commits.head()

    def tagged_snapshot(self, tag: str) -> int:
        tags = self._tags()
        if tag not in tags:
            known = f"its tags are {', '.join(sorted(tags))}" if tags else "it has no tags"
            raise BranchError(f"{self.name} has no tag {tag!r}: {known}")
        return tags[tag]

    def branches(self) -> Sequence[Branch]:
        rows = self.spark.sql(f"SELECT * FROM {self._part('branches')}").collect()  # noqa: S608 - the user's own
        found = []
        for row in sorted((row.asDict() for row in rows), key=lambda row: str(row["branch_name"])):
            name, created = str(row["branch_name"]), row.get("create_time")
            tag = row.get("created_from_tag")
            begun = None if tag is None else row.get("created_from_snapshot")  # else it is the first that is there
            at = None if created is None else created.astimezone(timezone.utc)
            found.append(Branch(name, tag, begun, at, self._head(name)))
        return found

    def create(self, branch: Branch) -> None:
        self._table.createBranch(branch.name, branch.tag)

    def delete(self, branch: Branch) -> None:
        self._table.deleteBranch(branch.name)

    def create_mirror(self, branch: Branch) -> None:
        """Paimon makes branches from tags alone, so the mirror brings its own, of the branch's name."""
        if branch.name not in self._tags():
            self._table.createTag(branch.name, branch.tagged_snapshot)
        self._table.createBranch(branch.name, branch.name)

    def delete_mirror(self, branch: Branch) -> None:
        self._table.deleteBranch(branch.name)
        if branch.name in self._tags():
            self._table.deleteTag(branch.name)

    def empty(self, branch: Branch) -> None:
        commit = self._on(branch.name).newCommit("headwater")
        try:
            commit.truncateTable()
        finally:
            commit.close()

    def reset(self, branch: Branch, snapshot: int) -> None:
        if self._head(branch.name) != snapshot:
            self._on(branch.name).rollbackTo(snapshot)

    def plan_move(self, branch: Branch) -> MainMove:
        if branch.head is None:
            raise BranchError(
                f"the branch {branch.name} of {self.name} has no snapshots, since it wasn't made from a tag: write it"
            )
        other, main = self._snapshots_of(branch.name), self.main_head()
        self._check_columns(branch, int(other.snapshot(branch.head).schemaId()))
        shared = {self._content(other.snapshot(number)) for number in numbers_of(other)}
        own = list[int]()
        for number in reversed(self._commits.numbers()):
            if self._content(self._snapshots.snapshot(number)) in shared:
                break
            own.append(number)
        head = self._content(other.snapshot(branch.head))
        if main is not None and self._content(self._snapshots.snapshot(main)) == head:
            return MainMove(branch, MoveKind.NOTHING, main, main)
        kind = MoveKind.REPLACE if own else MoveKind.FAST_FORWARD
        found = other.snapshot(branch.head)
        return MainMove(branch, kind, main, next_number(main), tuple(own), (), main, int(found.schemaId()))

    def move_main(self, move: MainMove, mark: str = "") -> MainMove:
        if move.kind is MoveKind.NOTHING:
            return move
        self.look()
        name = move.branch.name
        if self._head(name) != move.branch.head:
            raise MainMovedError(f"the branch {name} of {self.name} has got another commit: try again")
        content = self._snapshots_of(name).snapshot(move.branch.head)
        self._commit(content, move.previous, mark, move.branch.tagged_snapshot)
        return move

    def unreadable(self, snapshot: int) -> str | None:
        self.look()
        if self._snapshots.snapshotExists(snapshot):
            return None
        found = (
            f"it has expired, or never was. The oldest that is there is {min(self._commits.numbers(), default=None)}"
        )
        tag = next((name for name, number in self._tags().items() if number == snapshot), None)
        return found if tag is None else f"{found}; the tag {tag!r} has its rows: merge a branch that is made from it"

    def roll_back(self, to: int, expected: int | None, mark: str = "") -> MainRollBack:
        if problem := self.unreadable(to):
            raise BranchError(f"{self.name} can't go back to {to}: {problem}")
        found = self._snapshots.snapshot(to)
        number = self._commit(found, expected, mark, to)
        return MainRollBack(to, expected, number, expected, int(found.schemaId()))

    def marked_snapshot(self, previous: int | None, mark: str) -> int | None:
        self.look()
        number = next_number(previous)
        if not self._snapshots.snapshotExists(number):
            return None
        return number if self._snapshots.snapshot(number).commitUser() == mark else None

    def _commit(self, content: Any, expected: int | None, mark: str, begun: int | None) -> int:
        if self.main_head() != expected:
            raise MainMovedError.of(self.name, self.main_head(), expected)
        number = self._commits.give(content, expected, mark, begun)
        self.look()
        return number

    def _content(self, snapshot: Any) -> tuple[str, ...]:
        return files_of(self._table, snapshot)

    def _check_columns(self, branch: Branch, schema: int) -> None:
        """Refuse a branch with columns of its own: main would get them by a commit before that of the rows."""
        main, other = self._table.schemaManager(), self._on(branch.name).schemaManager()
        there = {int(number) for number in main.listAllIds()}
        for number in range(schema + 1):
            if number not in there or _columns(main.schema(number)) != _columns(other.schema(number)):
                raise BranchError(
                    f"the branch {branch.name} of {self.name} has other columns or options than main: change main by "
                    "the same ALTER TABLE first, or insert the branch's rows"
                )

    def forget_former_main(self, move: MainMove) -> None:
        """Its snapshots stay until they expire. Data files of theirs go with Paimon's removal of orphan files."""

    def expiry_risks(self, older_than: datetime) -> Sequence[ExpiryRisk]:
        """Main's expiry looks at main's snapshots and tags alone: it deletes files that only a branch still needs."""
        going = self._going(older_than)
        staying = [number for number in self._commits.numbers() if number not in going]
        tagged = [self._table.tagManager().taggedSnapshot(tag) for tag in self._tags()]
        kept = self._files(self._table, [*map(self._snapshots.snapshot, staying), *tagged])
        gone = self._files(self._table, map(self._snapshots.snapshot, going)) - kept
        risks = []
        for branch in self.branches():
            other = self._on(branch.name)
            needed = set() if branch.head is None else self._files(other, [other.snapshotManager().latestSnapshot()])
            if lacking := needed & gone:
                text = (
                    f"its newest snapshot needs {len(lacking)} of the files that go with main's: keep a tag of main on "
                    "a snapshot that has them"
                )
                risks.append(ExpiryRisk(branch.name, branch.head, text))
        return risks

    def unreadable_after(self, snapshots: Collection[int], older_than: datetime) -> set[int]:
        """By its number a snapshot can't be read any more, even where a tag keeps its files."""
        staying = set(self._commits.numbers()) - set(self._going(older_than))
        return set(snapshots) - staying

    def _going(self, older_than: datetime) -> list[int]:
        """Return main's snapshots that an expiry takes: the newest always stays."""
        limit, newest = int(older_than.timestamp() * 1000), self.main_head()
        return [
            number
            for number in self._commits.numbers()
            if number != newest and int(self._snapshots.snapshot(number).timeMillis()) < limit
        ]

    def name_of(self, branch: Branch) -> str:
        return self._part(f"branch_{branch.name}")

    def own_snapshots(self, branch: Branch) -> Sequence[int]:
        begun = branch.tagged_snapshot or 0
        return [number for number in numbers_of(self._snapshots_of(branch.name)) if number > begun]

    def _part(self, part: str) -> str:
        table, _, last = self.name.rpartition(".")
        return f"{table}.`{last.strip('`')}${part}`".lstrip(".")

    def _tags(self) -> dict[str, int]:
        rows = self.spark.sql(f"SELECT tag_name, snapshot_id FROM {self._part('tags')}").collect()  # noqa: S608
        return {str(row[0]): int(row[1]) for row in rows}

    def _on(self, branch: str) -> Any:
        return self._table.switchToBranch(branch)

    def _snapshots_of(self, branch: str) -> Any:
        return self._on(branch).snapshotManager()

    def _head(self, branch: str) -> int | None:
        found = self._snapshots_of(branch).latestSnapshotId()
        return None if found is None else int(found)

    def _files(self, table: Any, snapshots: Iterable[Any]) -> set[str]:
        """Return the data files that snapshots consist of."""
        inside: Any = self.spark
        kind = inside._jvm.org.apache.paimon.manifest.FileKind.ADD  # noqa: SLF001
        found = set[str]()
        for snapshot in snapshots:
            entries = table.store().newScan().withSnapshot(snapshot).plan().files(kind)
            found.update(str(entry.file().fileName()) for entry in entries)
        return found


def _columns(schema: Any) -> dict[str, Any]:
    """Return what a schema consists of, but when it was made."""
    return {key: value for key, value in json.loads(str(schema.toString())).items() if key != "timeMillis"}
