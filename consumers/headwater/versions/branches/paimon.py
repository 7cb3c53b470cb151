"""Branches of Paimon tables: directories with snapshots, schemas and tags of their own, over the same data files.

Paimon has no guarded way to put a branch in main's place: main's snapshots from the branch's first one on are deleted
and the branch's copied, file by file, and their numbers come again with other content. So it is looked at before and
after, and writers of main have to be stopped meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from typing import Any, ClassVar

from headwater.versions.branches.format_branches import FormatBranches
from headwater.versions.branches.model import (
    Branch,
    BranchError,
    ExpiryRisk,
    MainMove,
    MainMovedError,
    MoveKind,
)


class PaimonBranches(FormatBranches):
    format: ClassVar[str] = "paimon"

    def look(self) -> None:
        self._table = self.loaded.reload().table.getTable()
        self._snapshots = self._table.snapshotManager()

    @property
    def generation(self) -> str | None:
        return str(self._table.schemaManager().schema(0).timeMillis())

    @property
    def location(self) -> str:
        return str(self._table.location().toString())

    def main_head(self) -> int | None:
        found = self._snapshots.latestSnapshotId()
        return None if found is None else int(found)

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

    def plan_move(self, branch: Branch) -> MainMove:
        other, main, begun = self._snapshots_of(branch.name), self.main_head(), branch.tagged_snapshot
        if branch.head is None or begun is None or begun != other.earliestSnapshotId():
            raise BranchError(
                f"the branch {branch.name} of {self.name} doesn't begin at a tag: it was made without one, or its "
                "first snapshots have expired. Paimon would leave main's own in their place: insert its rows into main"
            )
        own = [number for number in self._numbers() if number > begun]
        own = [number for number in own if not self._is_same(number, other)]
        if not own and main == branch.head:
            return MainMove(branch, MoveKind.NOTHING, main, branch.head)
        tags = sorted(tag for tag, number in self._tags().items() if number in own)
        kind = MoveKind.REPLACE if own else MoveKind.FAST_FORWARD
        found = other.snapshot(branch.head)
        lost = tuple(reversed(own))
        return MainMove(branch, kind, main, branch.head, lost, tuple(tags), schema_id=int(found.schemaId()))

    def move_main(self, move: MainMove) -> MainMove:
        if move.kind is MoveKind.NOTHING:
            return move
        self.look()
        now = self.main_head()
        if now != move.previous or self._head(move.branch.name) != move.snapshot:
            raise MainMovedError(
                f"main of {self.name} is at {now}, and its branch {move.branch.name} at "
                f"{self._head(move.branch.name)}: another commit has come since the merge was planned; plan it anew"
            )
        self._table.fastForward(move.branch.name)
        self.look()
        self.spark.sql(f"REFRESH TABLE {self.name}")
        now, other = self.main_head(), self._snapshots_of(move.branch.name)
        if now != move.snapshot or now is None or not self._is_same(now, other):
            raise MainMovedError(
                f"main of {self.name} was committed to while {move.branch.name} took its place: it is at {now}, where "
                f"{move.snapshot} of the branch was to be. Stop its writers, and merge again"
            )
        return move

    def forget_former_main(self, move: MainMove) -> None:
        """The move itself has deleted its snapshots. Its data files go with Paimon's removal of orphan files."""

    def expiry_risks(self, older_than: datetime) -> Sequence[ExpiryRisk]:
        """Main's expiry looks at main's snapshots and tags alone: it deletes files that only a branch still needs."""
        limit, newest = int(older_than.timestamp() * 1000), self.main_head()
        going = [
            number
            for number in self._numbers()
            if number != newest and int(self._snapshots.snapshot(number).timeMillis()) < limit
        ]
        staying = [number for number in self._numbers() if number not in going]
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

    def name_of(self, branch: Branch) -> str:
        return self._part(f"branch_{branch.name}")

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

    def _numbers(self) -> list[int]:
        first, last = self._snapshots.earliestSnapshotId(), self.main_head()
        if first is None or last is None:
            return []
        return [number for number in range(int(first), last + 1) if self._snapshots.snapshotExists(number)]

    def _is_same(self, number: int, other: Any) -> bool:
        """Return whether main and a branch have the same snapshot of this number: numbers come again."""
        if not self._snapshots.snapshotExists(number) or not other.snapshotExists(number):
            return False
        one, two = self._snapshots.snapshot(number), other.snapshot(number)
        return (one.commitUser(), one.timeMillis()) == (two.commitUser(), two.timeMillis())

    def _files(self, table: Any, snapshots: Iterable[Any]) -> set[str]:
        """Return the data files that snapshots consist of."""
        inside: Any = self.spark
        kind = inside._jvm.org.apache.paimon.manifest.FileKind.ADD  # noqa: SLF001
        found = set[str]()
        for snapshot in snapshots:
            entries = table.store().newScan().withSnapshot(snapshot).plan().files(kind)
            found.update(str(entry.file().fileName()) for entry in entries)
        return found
