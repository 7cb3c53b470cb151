"""How far a query has read the tables that it reads, from its checkpoint and the tables' own files."""

from __future__ import annotations

import json
from collections.abc import Iterator

from headwater.versions.forks.checkpoint import ForkError, OffsetEntry, StreamCheckpoint, local_path
from headwater.versions.forks.delta import DeltaPosition, LocalDeltaTable


def newest_batch(checkpoint: str) -> int | None:
    """Return the newest batch that a query has committed; None if it has none, or there is no checkpoint yet."""
    place = local_path(checkpoint, "checkpoint")
    if not (place / "metadata").exists():
        return None
    committed = StreamCheckpoint(place).committed_batches()
    return committed[-1] if committed else None


def version_read(checkpoint: str, batch: int, table: str) -> int | None:
    """Return the version of a Delta table up to which a query had read it behind a batch; None if it reads no such
    table in its stream. A ForkError if the batch ends within a version."""
    found = StreamCheckpoint(local_path(checkpoint, "checkpoint"))
    found.require_committed(batch)
    positions = list(_positions(found.offsets(batch), table))
    versions = {position.last_read for position in positions}
    if None in versions:
        raise ForkError(
            f"batch {batch} of {checkpoint} ends in the middle of a version of {table}: maxFilesPerTrigger or "
            "maxBytesPerTrigger cut it, and no other table holds just what was read"
        )
    if len(versions) > 1:
        raise ForkError(f"batch {batch} of {checkpoint} reads {table} twice, and stands at different versions in it")
    return versions.pop() if versions else None


def unread_versions(checkpoint: str, table: str) -> list[int]:
    """Return the versions of a Delta table whose new rows a query hasn't read yet."""
    batch = newest_batch(checkpoint)
    there = LocalDeltaTable(table)
    read = None if batch is None else version_read(checkpoint, batch, table)
    if read is None:
        raise ForkError(f"{checkpoint} shows no batch that read {table}")
    return there.versions_with_new_rows(read)


def _positions(entry: OffsetEntry, table: str) -> Iterator[DeltaPosition]:
    """Yield where each source of the query stands that reads this table."""
    there = LocalDeltaTable(table)
    for text in entry.offsets.values():
        try:
            fields = json.loads(text or "null")
        except ValueError:
            continue
        if isinstance(fields, dict) and there.is_read_by(fields):
            yield DeltaPosition.parse(text or "")
