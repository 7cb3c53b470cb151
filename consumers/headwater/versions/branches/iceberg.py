"""Branches of Iceberg tables: names that point to snapshots, which all share the table's schema.

Each change is one commit of the table's metadata, made only if nobody has committed since the metadata was read. The
procedures of Iceberg for Spark take such a conflict for something to try again, over whatever main has got meanwhile.
What a branch was made from stands in a property of the table.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from typing import Any, ClassVar, Final

from headwater.errors import TransientError
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
from headwater.versions.table_parts import MAIN

_PROPERTY: Final = "headwater.branch."
_MOVED: Final = "headwater.main-moved"
"""The property that says which marked commit moved main last."""
_ATTEMPTS: Final = 5
_CONFLICT: Final = "org.apache.iceberg.exceptions.CommitFailedException"


class IcebergBranches(FormatBranches):
    format: ClassVar[str] = "iceberg"

    def look(self) -> None:
        self._table = self.loaded.table.table()
        self._operations = self._table.operations()
        self._metadata = self._operations.refresh()

    @property
    def generation(self) -> str | None:
        return str(self._metadata.uuid())

    @property
    def location(self) -> str:
        return str(self._metadata.location())

    def main_head(self) -> int | None:
        return self._head(MAIN)

    def tagged_snapshot(self, tag: str) -> int:
        found = self._refs().get(tag)
        if found is None or not found.isTag():
            tags = sorted(name for name, ref in self._refs().items() if ref.isTag())
            known = f"its tags are {', '.join(tags)}" if tags else "it has no tags"
            raise BranchError(f"{self.name} has no tag {tag!r}: {known}")
        snapshot = int(found.snapshotId())
        if snapshot not in set(self._ancestors(self.main_head())):
            raise BranchError(f"the tag {tag!r} of {self.name} isn't of main: branches are made from main alone")
        return snapshot

    def branches(self) -> Sequence[Branch]:
        names = sorted(name for name, ref in self._refs().items() if ref.isBranch() and name != MAIN)
        return [self._branch(name) for name in names]

    def create(self, branch: Branch) -> None:
        assert branch.tagged_snapshot is not None and branch.created_at is not None  # noqa: S101, PT018
        said = {"tag": branch.tag, "snapshot": branch.tagged_snapshot, "created": branch.created_at.isoformat()}
        key, text = f"{_PROPERTY}{branch.name}", json.dumps(said)

        def change(builder: Any) -> Any:
            if branch.name in self._refs():
                raise BranchError(f"{self.name} has a branch or tag {branch.name!r} already")
            ref = self._java("SnapshotRef").branchBuilder(branch.tagged_snapshot).build()
            return builder.setRef(branch.name, ref).setProperties({key: text})

        self._commit(change)

    def delete(self, branch: Branch) -> None:
        key = f"{_PROPERTY}{branch.name}"

        def change(builder: Any) -> Any:
            if branch.name not in self._refs():
                raise BranchError(f"{self.name} has no branch {branch.name!r} any more")
            inside: Any = self.spark
            keys = inside._jvm.java.util.HashSet()  # noqa: SLF001
            if self._metadata.properties().containsKey(key):
                keys.add(key)
            return builder.removeRef(branch.name).removeProperties(keys)

        self._commit(change)

    def plan_move(self, branch: Branch) -> MainMove:
        main, head = self.main_head(), branch.head
        if main == head:
            return MainMove(branch, MoveKind.NOTHING, main, head)
        line, own = list(self._ancestors(head)), []
        for snapshot in self._ancestors(main):
            if snapshot in line:
                break
            own.append(snapshot)
        tags = sorted(name for name, ref in self._refs().items() if ref.isTag() and int(ref.snapshotId()) in own)
        kind = MoveKind.REPLACE if own else MoveKind.FAST_FORWARD
        parent, schema = _numbers_of(None if head is None else self._metadata.snapshot(head))
        return MainMove(branch, kind, main, head, tuple(own), tuple(tags), parent, schema)

    def move_main(self, move: MainMove, mark: str = "") -> MainMove:
        if move.kind is MoveKind.NOTHING:
            return move

        def change(builder: Any) -> Any:
            if self._head(move.branch.name) != move.snapshot:
                raise MainMovedError(f"the branch {move.branch.name} of {self.name} has got another commit: try again")
            for tag in move.lost_tags:
                builder.removeRef(tag)
            return builder

        assert move.snapshot is not None  # noqa: S101 - a branch has a snapshot
        self._set_main(move.snapshot, move.previous, mark, change)
        return move

    def unreadable(self, snapshot: int) -> str | None:
        self.look()
        if self._metadata.snapshot(snapshot) is not None:
            return None
        return f"the table's metadata doesn't have it: it has expired. The oldest of main is {self._oldest()}"

    def _oldest(self) -> int | None:
        return next(reversed([one for one in self._ancestors(self.main_head()) if self._metadata.snapshot(one)]), None)

    def roll_back(self, to: int, expected: int | None, mark: str = "") -> MainRollBack:
        if problem := self.unreadable(to):
            raise BranchError(f"{self.name} can't go back to {to}: {problem}")
        self._set_main(to, expected, mark, lambda builder: builder)
        parent, schema = _numbers_of(self._metadata.snapshot(to))
        return MainRollBack(to, expected, to, parent, schema)

    def marked_snapshot(self, previous: int | None, mark: str) -> int | None:
        self.look()
        said = json.loads(self._metadata.properties().get(_MOVED) or "{}")
        return int(said["to"]) if said.get("mark") == mark and said.get("from") == previous else None

    def _set_main(self, to: int, expected: int | None, mark: str, change: Callable[[Any], Any]) -> None:
        """Let main point to a snapshot, with another change of the same metadata."""

        def guarded(builder: Any) -> Any:
            now = self.main_head()
            if now != expected:
                raise MainMovedError.of(self.name, now, expected)
            if mark:
                said = json.dumps({"mark": mark, "from": expected, "to": to})
                builder.setProperties({_MOVED: said})
            return change(builder.setBranchSnapshot(to, MAIN))

        self._commit(guarded)
        self.spark.sql(f"REFRESH TABLE {self.name}")

    def forget_former_main(self, move: MainMove) -> None:
        """Expire the snapshots that no branch or tag leads to, with the files that are theirs alone."""
        self.look()
        reached = {one for ref in self._refs().values() for one in self._ancestors(int(ref.snapshotId()))}
        own = [snapshot for snapshot in move.lost_snapshots if snapshot not in reached]
        if not own:
            return
        self._table.refresh()
        expiry = self._table.expireSnapshots()
        for snapshot in own:
            expiry = expiry.expireSnapshotId(snapshot)
        expiry.cleanExpiredFiles(True).commit()

    def expiry_risks(self, older_than: datetime) -> Sequence[ExpiryRisk]:
        """Iceberg keeps each branch's newest snapshots, and takes those behind. A branch goes with them once it is
        older than its own or the table's max-ref-age."""
        limit, found = int(older_than.timestamp() * 1000), list[ExpiryRisk]()
        kept = {int(ref.snapshotId()) for ref in self._refs().values()}
        default = self._metadata.properties().get("history.expire.max-ref-age-ms")
        for branch in self.branches():
            ref = self._refs()[branch.name]
            age = ref.maxRefAgeMs() if ref.maxRefAgeMs() is not None else default
            head = None if branch.head is None else self._metadata.snapshot(branch.head)
            if head is not None and age is not None and _now_millis() - int(head.timestampMillis()) > int(age):
                text = "the branch itself goes: it is older than its max-ref-age"
                found.append(ExpiryRisk(branch.name, branch.head, text))
            own = list(self._ancestors(branch.head))
            least = int(ref.minSnapshotsToKeep() or 1)
            for snapshot in own[least:]:
                if snapshot in kept or int(self._metadata.snapshot(snapshot).timestampMillis()) >= limit:
                    continue
                is_origin = snapshot == branch.tagged_snapshot
                text = (
                    "what main and the branch each got since the tag isn't known any more"
                    if is_origin
                    else f"no query reads {branch.name}.{snapshot} any more"
                )
                found.append(ExpiryRisk(branch.name, snapshot, text))
        return found

    def unreadable_after(self, snapshots: Collection[int], older_than: datetime) -> set[int]:
        """An expiry keeps what a name points to, and what is younger."""
        limit = int(older_than.timestamp() * 1000)
        kept = {int(ref.snapshotId()) for ref in self._refs().values()}
        there = {each: self._metadata.snapshot(each) for each in snapshots}
        return {
            number
            for number, found in there.items()
            if found is None or (number not in kept and int(found.timestampMillis()) < limit)
        }

    def name_of(self, branch: Branch) -> str:
        return f"{self.name}.`branch_{branch.name}`"

    def reset(self, branch: Branch, snapshot: int) -> None:
        self._commit(lambda builder: builder.setBranchSnapshot(snapshot, branch.name))
        self.spark.sql(f"REFRESH TABLE {self.name}")

    def own_snapshots(self, branch: Branch) -> Sequence[int]:
        own = list[int]()
        for snapshot in self._ancestors(branch.head):
            if snapshot == branch.tagged_snapshot:
                break
            own.append(snapshot)
        return own

    def _branch(self, name: str) -> Branch:
        """Of a branch that another program made, what it was made from is where it leaves main."""
        head, said = self._head(name), dict[str, Any]()
        with suppress(ValueError):
            said = json.loads(self._metadata.properties().get(f"{_PROPERTY}{name}") or "{}")
        if "snapshot" in said:
            created = datetime.fromisoformat(said["created"])
            return Branch(name, said.get("tag"), int(said["snapshot"]), created, head)
        main = set(self._ancestors(self.main_head()))
        begun = next((snapshot for snapshot in self._ancestors(head) if snapshot in main), None)
        return Branch(name, None, begun, None, head)

    def _refs(self) -> Mapping[str, Any]:
        return {str(name): ref for name, ref in dict(self._metadata.refs()).items()}

    def _head(self, branch: str) -> int | None:
        ref = self._refs().get(branch)
        return None if ref is None else int(ref.snapshotId())

    def _ancestors(self, of: int | None) -> Iterator[int]:
        """Yield a snapshot and those that it was made from, as far as they haven't expired."""
        at = None if of is None else self._metadata.snapshot(of)
        while at is not None:
            yield int(at.snapshotId())
            parent = at.parentId()
            at = None if parent is None else self._metadata.snapshot(parent)

    def _commit(self, change: Callable[[Any], Any]) -> None:
        """Commit a change of the metadata as it is now; of newer metadata, if another commit was faster."""
        for _ in range(_ATTEMPTS):
            self._metadata = self._operations.refresh()
            changed = change(self._java("TableMetadata").buildFrom(self._metadata)).build()
            try:
                self._operations.commit(self._metadata, changed)
            except Exception as e:
                java: Any = getattr(e, "java_exception", None)  # of py4j's errors
                if java is None or str(java.getClass().getName()) != _CONFLICT:
                    raise
                continue
            self._metadata = self._operations.refresh()
            return
        raise TransientError(f"{self.name} is committed to all the time: {_ATTEMPTS} attempts failed; try again")

    def _java(self, name: str) -> Any:
        inside: Any = self.spark
        return getattr(inside._jvm.org.apache.iceberg, name)  # noqa: SLF001


def _numbers_of(snapshot: Any) -> tuple[int | None, int | None]:
    """Return a snapshot's parent and its schema, as far as they are known."""
    found = (None, None) if snapshot is None else (snapshot.parentId(), snapshot.schemaId())
    parent, schema = (None if number is None else int(number) for number in found)
    return parent, schema


def _now_millis() -> int:
    return int(datetime.now(timezone.utc).timestamp() * 1000)
