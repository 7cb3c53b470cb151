"""Compares versions within a snapshot, at which a stream stopped, with others, as far as that is known.

How many rows of the snapshot are before a position isn't known: none, some or all of them. Hudi's streams read what was
completed by a time, and its states have what was asked for by one: neither says what the other has.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from headwater.events.scalars import Format
from headwater.lineage.questions.answers import LimitReason
from headwater.versions.model import Doubt, TableContents, Version, VersionKey

_BY_COMPLETION: Final = Format.HUDI.value
_BY_SPLITS: Final = Format.PAIMON.value
"""It counts splits, whose size is an option of each reader: one number means the same rows to one job alone."""


def doubts_within(
    tables: Iterable[TableContents],
    private: Collection[bytes],
    unseen: Collection[bytes],
    near: frozenset[bytes] | set[bytes],
) -> set[Doubt]:
    """Return what isn't known of states within a snapshot: where they are why a shared table couldn't be compared, and
    where a shared table is behind them."""
    return {
        _doubt_of(state.version)
        for table in tables
        for _, state in table.contents.all.within
        if state.version.dataset in unseen
        or (state.version.dataset in private and not near.isdisjoint(state.behind.all.ancestors))
    }


def _doubt_of(version: Version) -> Doubt:
    detail = (
        f"a stream stopped at {version.position}, and which rows of that snapshot it has read isn't known: a stream "
        "whose batches have no limit of their size stops between snapshots"
    )
    if version.format == _BY_COMPLETION:
        detail = (
            f"a stream of Hudi has read what was completed by {version.position}, which can be more or less than the "
            f"table has at {version.snapshot}: only what streams made goes together, or only what other queries made"
        )
    return Doubt(version.dataset, LimitReason.UNKNOWN_SNAPSHOT, version.snapshot, detail)


def are_equal_positions(dataset: bytes, one: TableContents, other: TableContents) -> bool:
    """Return whether versions of a table whose keys are equal have the same rows."""
    within = [
        state
        for side in (one, other)
        for _, state in side.contents.all.within
        if state.version.dataset == dataset and state.version.format == _BY_SPLITS
    ]
    return len({state.job for state in within}) < 2


def unlike(dataset: bytes, one: TableContents, other: TableContents) -> set[VersionKey]:
    """Return the versions of a table that one has and the other one lacks, but those that can have the rows of one
    that the first lacks."""
    first, second = one.versions[dataset], other.versions[dataset]
    mine = first - second
    if not one.contents.all.within and not other.contents.all.within:
        return set(mine)
    theirs = [version for version in _versions(dataset, other) if version.key in second - first]
    return {
        version.key
        for version in _versions(dataset, one)
        if version.key in mine and not any(_can_be_one(version, some) for some in theirs)
    }


def _versions(dataset: bytes, table: TableContents) -> Iterator[Version]:
    if table.dataset == dataset:
        yield table.version
    else:
        yield from (state.version for _, state in table.contents.all.of(dataset))


def _can_be_one(one: Version, other: Version) -> bool:
    """Return whether two different versions can have the same rows. A later snapshot of the same line has other rows
    than any position within an earlier one."""
    if not one.is_within and not other.is_within:
        return False
    if one.is_within and other.is_within and one.snapshot == other.snapshot and one.format != _BY_SPLITS:
        return False
    within, whole = (one, other) if one.is_within else (other, one)
    is_numbered = within.is_ordered and within.format != _BY_COMPLETION and whole.format == within.format
    is_later = None not in (within.snapshot, whole.snapshot) and (whole.snapshot or 0) > (within.snapshot or 0)
    return not (is_numbered and is_later and not whole.is_within)
