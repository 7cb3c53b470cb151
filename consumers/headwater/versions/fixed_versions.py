"""What versions have to go with: versions of other tables, a cut, a data version of a group, or a time.

The versions of a table that nobody reports writes of: those that were read.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, TypeAlias

from sqlalchemy import Connection, and_, func, select

from headwater.errors import ConfigurationError
from headwater.lineage.mapping.commits import SINK
from headwater.lineage.questions.traversal.context import TraversalContext
from headwater.lineage.questions.traversal.snapshot_rows import is_unordered
from headwater.lineage.questions.traversal.snapshot_writers import SnapshotRef
from headwater.lineage.rows import tables as t
from headwater.lineage.rows.tombstones import DATA
from headwater.lineage.sql.accesses import access_of
from headwater.lineage.sql.key_lookup import select_by_keys
from headwater.lineage.sql.tables import table_of
from headwater.lineage.sql.tombstones import not_hidden
from headwater.versions.cuts import Cut, DataVersion


class ObservedVersion(NamedTuple):
    """A version that some commit read as a whole."""

    ref: SnapshotRef
    format: str | None
    first_read: int


def has_writing_job(connection: Connection, datasets: Collection[bytes]) -> bool:
    """Return whether any job is known that writes a table. That outlives its writes, when those are purged."""
    row = table_of(t.TABLE_LINEAGE).c
    found = select(row.id).where(row.dataset.in_(datasets), row.side == SINK).limit(1)
    return connection.scalar(found) is not None


def load_generations(connection: Connection, datasets: Collection[bytes]) -> dict[bytes, set[str]]:
    """Return the generations of tables that any commit wrote."""
    row = table_of(t.PLACE).c
    chosen = (
        select(row.dataset, row.generation).where(row.made_from.is_not(None), row.generation.is_not(None)).distinct()
    )
    found: dict[bytes, set[str]] = {}
    for generation in select_by_keys(connection, chosen, row.dataset, datasets):
        found.setdefault(bytes(generation.dataset), set()).add(generation.generation)
    return found


def load_versions_read(
    walk: TraversalContext, datasets: Collection[bytes], *, snapshot: int | None = None, branch: str | None = None
) -> list[ObservedVersion]:
    """Return the versions of a table that any commit read as a whole, the newest first: by number where numbers have an
    order, else by when they were first read. Reads that aren't shown don't count."""
    read, commit = access_of(t.READ), table_of(t.COMMIT)
    row = read.c
    of_branch = row.branch.is_(None) if branch is None else row.branch == branch
    of_number = row.snapshot.is_not(None) if snapshot is None else row.snapshot == snapshot
    key = (row.dataset, row.snapshot, row.generation, row.branch, row.format)
    chosen = select(*key, func.min(row.first).label("since")).group_by(*key)
    chosen = chosen.where(row.dataset.in_(datasets), of_number, of_branch, row.version.is_(None))
    if not walk.hiding.hides_nothing:
        its = and_(row.commit_id == commit.c.id, row.barrier == commit.c.barrier)
        chosen = chosen.select_from(read.join(commit, its)).where(not_hidden(row, commit.c, DATA))
    rows = walk.connection.execute(chosen)
    found = [
        ObservedVersion(
            SnapshotRef(bytes(one.dataset), one.snapshot, one.generation, one.branch), one.format, one.since
        )
        for one in rows
    ]
    newest: dict[str | None, int] = {}
    for known in found:
        newest[known.ref.generation] = max(newest.get(known.ref.generation, 0), known.first_read)

    def order(each: ObservedVersion) -> tuple[int, int]:
        number = each.first_read if is_unordered(each.format) else each.ref.snapshot
        return (newest[each.ref.generation], number)

    return sorted(found, key=order, reverse=True)


At: TypeAlias = str | Sequence[str] | Mapping[str, int] | Cut | DataVersion | datetime | None
"""`"lake.ods.orders@20"` or several of these, `{"lake.ods.orders": 20}`, a cut, a data version, or a time after which
nothing is considered."""


class FixedVersion(NamedTuple):
    """A version of a table that others have to go with."""

    table: str
    snapshot: int | None
    """None if the name has it."""
    generation: str | None = None


def fixed_versions(at: At) -> tuple[list[FixedVersion], datetime | None]:
    """Return the versions that `at` names, and the time."""
    if at is None or isinstance(at, datetime):
        return [], at
    if isinstance(at, DataVersion):
        at = at.cut
    if isinstance(at, Cut):
        return [
            FixedVersion(name, version.snapshot, version.generation) for name, version in at.snapshots.items()
        ], None
    if isinstance(at, Mapping):
        return [FixedVersion(name, snapshot) for name, snapshot in at.items()], None
    named = [at] if isinstance(at, str) else list(at)
    for text in named:
        if "@" not in text:
            raise ConfigurationError(f"{text!r} names no version: write TABLE@NUMBER, such as lake.ods.orders@20")
    return [FixedVersion(table, None) for table in named], None
