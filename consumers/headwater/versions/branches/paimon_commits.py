"""Guarded commits of Paimon tables: main's next snapshot consists of the files of another one, or isn't made.

Paimon's expiry doesn't know that a file comes back. It deletes what a snapshot has removed, and the manifests that the
oldest snapshot which stays doesn't have, though a later one has them again. What a tag has, it leaves. So the snapshot
that files are taken from and the one that gets them have tags of ours, which have no end.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any, Final

from headwater.versions.branches.model import BranchError, MainMovedError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_USER: Final = "headwater"
_KIND: Final = "OVERWRITE"
_LAST: Final = 2**63 - 1
"""The identifier that Paimon gives to the commits of batch jobs."""
KEEPER: Final = "headwater-keeps-files-of-"
"""What the names of our tags begin with; the snapshot's number is behind it."""
_OF_CHANGES: Final = ("changelogManifestList", "statistics")
"""What a snapshot has of its own commit, and not of the table's rows."""


class PaimonCommits:
    """The snapshots of a table's main, as they were when the table was looked at."""

    def __init__(self, spark: SparkSession, name: str, table: Any) -> None:
        self._spark: Final = spark
        self._name: Final = name
        self._table: Final = table
        self._snapshots: Final = table.snapshotManager()
        self._tags: Final = table.tagManager()
        self._lists: Final = table.store().manifestListFactory().create()

    def head(self) -> int | None:
        found = self._snapshots.latestSnapshotId()
        return None if found is None else int(found)

    def numbers(self) -> list[int]:
        """Return the numbers of the snapshots that are there."""
        return numbers_of(self._snapshots)

    def give(self, content: Any, expected: int | None, mark: str, begun: int | None) -> int:
        """Make the snapshot behind `expected`, of the files that another one has, or raise a MainMovedError. Return its
        number.

        `begun` is the newest snapshot of main that has all files of main's among these. The snapshot's file is made
        only if there is none: whoever commits at the same time is before or behind it.
        """
        files, number = self._table.fileIO(), next_number(expected)
        if files.isObjectStore():
            raise BranchError(
                f"{self._name} is on an object store, where Paimon's commits are safe by a lock of its catalog alone: "
                "insert the rows instead, while nobody else writes"
            )
        self._keep_files(begun)
        fields = json.loads(content.toJson())
        fields |= {"id": number, "commitKind": _KIND, "commitUser": mark or _USER, "commitIdentifier": _LAST}
        fields |= {"timeMillis": time.time_ns() // 1_000_000, "deltaRecordCount": 0, "changelogRecordCount": 0}
        fields |= self._manifest_lists(content)
        kept = {key: value for key, value in fields.items() if key not in _OF_CHANGES}
        if not files.tryToWriteAtomic(self._snapshots.snapshotPath(number), json.dumps(kept)):
            raise MainMovedError.of(self._name, self.head(), expected)
        self._snapshots.commitLatestHint(number)
        self._keep(number)
        self._spark.sql(f"REFRESH TABLE {self._name}")
        return number

    def _manifest_lists(self, content: Any) -> dict[str, str]:
        """Return lists of a snapshot's own. It changes nothing by itself: with the changes of what it takes its files
        from, its expiry would delete what these removed, which may have come back."""
        inside: Any = self._spark
        base = self._lists.write(self._lists.readDataManifests(content))
        return {"baseManifestList": base, "deltaManifestList": self._lists.write(inside._jvm.java.util.ArrayList())}  # noqa: SLF001

    def _keep_files(self, begun: int | None) -> None:
        """Keep the files of the snapshot that files are taken from. What was killed behind a commit of ours left that
        without a tag: it gets one, too."""
        there = self.numbers()
        for number in there:
            if self._is_ours(self._snapshots.snapshot(number)):
                self._keep(number)
        tagged = {int(each.id()) for each in self._tags.taggedSnapshots()}
        if begun is None or (begun not in there and begun not in tagged):
            begun = there[0] if there else None  # all that is there of main's has been since
        if begun is not None:
            self._keep(begun)

    def _is_ours(self, snapshot: Any) -> bool:
        is_overwrite = str(snapshot.commitKind().toString()) == _KIND
        return is_overwrite and bool(self._lists.readDeltaManifests(snapshot).isEmpty())

    def _keep(self, number: int) -> None:
        name = f"{KEEPER}{number}"
        if self._tags.tagExists(name):
            return
        inside: Any = self._spark
        self._tags.createTag(self._snapshot(number), name, None, inside._jvm.java.util.ArrayList())  # noqa: SLF001

    def _snapshot(self, number: int) -> Any:
        if self._snapshots.snapshotExists(number):
            return self._snapshots.snapshot(number)
        return next(each for each in self._tags.taggedSnapshots() if int(each.id()) == number)


def numbers_of(snapshots: Any) -> list[int]:
    """Return the numbers of the snapshots that are there."""
    first, last = snapshots.earliestSnapshotId(), snapshots.latestSnapshotId()
    if first is None or last is None:
        return []
    return [number for number in range(int(first), int(last) + 1) if snapshots.snapshotExists(number)]


def next_number(number: int | None) -> int:
    """Return the number of the snapshot behind one."""
    return 1 if number is None else number + 1
