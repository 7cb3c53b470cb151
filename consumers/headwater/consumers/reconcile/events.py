"""Makes an event of a commit that nobody reported: its output as the log has it, and no inputs, which aren't known.

Only of a commit that picked another one the log tells what it was made from.

Whoever repairs the same commit makes the same event, so that two repairs are one. A driver reports it by another event,
and answers prefer that.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final
from uuid import UUID

from headwater.consumers.reconcile.model import KEEPS_ROWS, LogCommit, PickedCommit, TableLog
from headwater.events.clock import moment_of
from headwater.events.jobs import (
    CommitEvidence,
    CommitKind,
    Committed,
    Input,
    Output,
    OverwriteScope,
    RangeStart,
    ReadMode,
)
from headwater.events.names import DatasetId
from headwater.events.scalars import Format

_LOW_BITS: Final = (1 << 20) - 1


def reconciled_event(dataset: DatasetId, log: TableLog, commit: LogCommit) -> Committed:
    """Return the event, stamped: its producer is made from the commit's identity, its time is the commit's."""
    branch = commit.branches[0] if commit.branches else None
    identity = (dataset.namespace, dataset.name, str(log.generation), branch or "", commit.snapshot, commit.time)
    digest = blake2b(repr(identity).encode("utf-8", "surrogatepass"), digest_size=16, person=b"reconciled").digest()
    producer = UUID(bytes=digest)
    output = Output(
        dataset=dataset,
        generation=log.generation,
        format=log.format,
        branch=branch,
        main=bool(commit.branches) and branch is None,
        snapshot=commit.snapshot,
        parent=commit.parent,
        schema_id=commit.schema_id,
        commit_kind=commit.kind,
        replaced=commit.replaced,
        made_from=(0,) if commit.picked is not None else () if _keeps_rows(log, commit) else None,
        rows=commit.rows,
        bytes=commit.bytes,
    )
    return Committed(
        producer=producer,
        sequence=1,
        family_sequence=1,
        time=moment_of(commit.time),
        barrier=((commit.time // 1_000) << 20) + (producer.int & _LOW_BITS),
        inputs=() if commit.picked is None else (_picked_input(output, commit.picked),),
        outputs=(output,),
        evidence=CommitEvidence.RECONCILED,
    )


def _picked_input(output: Output, picked: PickedCommit) -> Input:
    """Return the changes of the commit that was picked, as a driver reports them."""
    is_main = None in picked.branches
    return Input(
        dataset=output.dataset,
        generation=output.generation,
        format=output.format,
        branch=picked.branches[0] if not is_main and len(picked.branches) == 1 else None,
        main=is_main,
        mode=ReadMode.STATE if picked.parent is None else ReadMode.CHANGES,
        snapshot=picked.snapshot,
        since=None if picked.parent is None else RangeStart(snapshot=picked.parent),
    )


def _keeps_rows(log: TableLog, commit: LogCommit) -> bool:
    """Return whether the table has the same rows after it, so that it was made from nothing new. Paimon marks deleted
    rows by commits that it calls compactions, so there nothing is known."""
    if log.format is Format.PAIMON:
        return False
    is_rewrite = log.format is Format.ICEBERG and commit.kind is CommitKind.REPLACE
    return (commit.kind in KEEPS_ROWS and commit.replaced is OverwriteScope.NOTHING) or is_rewrite
