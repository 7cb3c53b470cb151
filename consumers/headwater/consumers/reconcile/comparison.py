"""Compares a table's log with what the store knows of the table.

Makes an event of a commit that nobody reported: its output as the log has it, and no inputs, which aren't known.

Only of a commit that picked another one the log tells what it was made from.

Whoever repairs the same commit makes the same event, so that two repairs are one. A driver reports it by another event,
and answers prefer that.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from hashlib import blake2b
from typing import Final
from uuid import UUID

from sqlalchemy import Connection, select

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
from headwater.events.names import DatasetId, TableName
from headwater.events.scalars import Format
from headwater.lineage.bulk.positions import bus_stored_until
from headwater.lineage.mapping.keys import generation_text
from headwater.lineage.questions.gaps.sequences import find_pending_gaps
from headwater.lineage.questions.traversal.identities import Identities
from headwater.lineage.questions.traversal.reconciled import RECONCILED, REUSE_MICROS, is_pointer
from headwater.lineage.questions.traversal.snapshot_rows import SnapshotWrite, load_catalog_changes, load_writes
from headwater.lineage.questions.traversal.tombstone_lookup import TombstoneLookup
from headwater.lineage.rows import tables as t
from headwater.lineage.rows.tombstones import DATA, DeletionSubject
from headwater.lineage.sql.key_lookup import select_by_keys
from headwater.lineage.sql.tables import table_of

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


_NOBODY: Final = (None, None)


class CommitStatus(str, Enum):
    """What the store knows of a commit in a table's log."""

    KNOWN = "KNOWN"
    RECONCILED = "RECONCILED"
    """An earlier repair reported it, and still no driver did."""
    UNKNOWN = "UNKNOWN"
    """Nobody reported it."""
    UNSETTLED = "UNSETTLED"
    """It is so young that its event may be on its way."""
    UNCONFIRMED = "UNCONFIRMED"
    """The log has it in a place where attempts that failed stand too."""
    DELETED = "DELETED"
    """Its lineage was deleted or has expired: it isn't reported again."""


@dataclass(frozen=True)
class ComparedCommit:
    commit: LogCommit
    status: CommitStatus


def settled_until(connection: Connection, now: int, settle_micros: int) -> int:
    """Return the time up to which a commit that the store doesn't know is one that nobody reported.

    Later ones may still come: they are younger than what is granted to drivers and buses, or later than what the writer
    has stored of each partition, or a number of a producer is missing that may arrive.
    """
    stored = bus_stored_until(connection)
    pending = [gap.since for gap in find_pending_gaps(connection, now)]
    return min([now - settle_micros, *([] if stored is None else [stored]), *pending])


def compare(connection: Connection, dataset: bytes, log: TableLog, until: int) -> list[ComparedCommit]:
    """Return each commit of the log with what the store knows of it. `until` comes from `settled_until`."""
    group = list(Identities(connection).group(dataset))
    keys = {(each, commit.snapshot) for each in group for commit in log.commits}
    reported: dict[int, list[SnapshotWrite]] = {}
    for write in (*load_writes(connection, keys), *load_catalog_changes(connection, keys)):
        if write.snapshot is not None and not is_pointer(write):
            reported.setdefault(write.snapshot, []).append(write)
    possible = _candidates(connection, group)
    hiding = TombstoneLookup(connection)
    compared = []
    for commit in log.commits:
        fitting = [each for each in reported.get(commit.snapshot, ()) if _is_of(each, commit, log)]
        if any(each.evidence != RECONCILED for each in fitting) or commit.snapshot in possible:
            status = CommitStatus.KNOWN
        elif fitting:
            status = CommitStatus.RECONCILED
        elif hiding.are_hidden([_subject(dataset, commit, log)])[0]:
            status = CommitStatus.DELETED
        elif commit.time > until:
            status = CommitStatus.UNSETTLED
        else:
            status = CommitStatus.UNKNOWN if commit.is_confirmed else CommitStatus.UNCONFIRMED
        compared.append(ComparedCommit(commit, status))
    return compared


def _is_of(write: SnapshotWrite, commit: LogCommit, log: TableLog) -> bool:
    """Return whether what was reported is this commit of the log."""
    generation = generation_text(log.generation)
    if None not in {write.generation, generation} and write.generation != generation:
        return False
    if log.format is not Format.PAIMON:  # the numbers of the others are unique over branches
        return True
    is_reused = log.reuses_numbers and write.at < commit.time - REUSE_MICROS
    return write.branch in commit.branches and not is_reused


def _candidates(connection: Connection, group: Sequence[bytes]) -> set[int]:
    """Return the snapshots of which a driver said that its commit is one of them."""
    place, write = table_of(t.PLACE), table_of(t.WRITE)
    query = select(write.c.candidates, place.c.dataset).join_from(place, write, write.c.place_id == place.c.id)
    query = query.where(write.c.snapshot.is_(None), write.c.candidates.is_not(None))
    found = select_by_keys(connection, query, place.c.dataset, group)
    return {int(number) for each in found for number in json.loads(each.candidates)}


def _subject(dataset: bytes, commit: LogCommit, log: TableLog) -> DeletionSubject:
    generation = generation_text(log.generation)
    return DeletionSubject(DATA, commit.time, _NOBODY, _NOBODY, None, dataset, None, generation, commit.snapshot)


def datasets_with_logs(connection: Connection, formats: Iterable[str]) -> list[bytes]:
    """Return the datasets of the store that were written as tables of these formats."""
    wanted = tuple(formats)
    place, generation = table_of(t.PLACE).c, table_of(t.GENERATION).c
    by_place = select(place.dataset).where(place.format.in_(wanted), place.dataset.is_not(None)).distinct()
    by_generation = select(generation.dataset).where(generation.format.in_(wanted)).distinct()
    found = {bytes(each) for query in (by_place, by_generation) for each in connection.scalars(query)}
    identities = Identities(connection)
    return sorted({identities.one(each) for each in found})


def names_of(connection: Connection, dataset: bytes) -> tuple[tuple[TableName, ...], bool]:
    """Return the names that catalogs have for a dataset now, and whether it had any that were taken away."""
    row = table_of(t.ALIAS).c
    query = select(row.catalog, row.database_name, row.table_name, row.last, row.deleted).where(row.dataset == dataset)
    found = connection.execute(query.order_by(row.last.desc())).all()
    current = [each for each in found if each.last > each.deleted]
    names = tuple(TableName(catalog=each[0] or "", database=each[1] or "", table=each[2]) for each in current)
    return names, len(current) < len(found)
