"""Drafts of a statement: what it did to catalogs, what it committed, how it failed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain
from typing import Final, TypeAlias

from headwater.events import Event, Gap
from headwater.events.catalog import CatalogModification
from headwater.events.health import GapReason
from headwater.listeners.capture.asking import missing_parts
from headwater.listeners.capture.batch.commit_translator import CommitTranslator
from headwater.listeners.capture.batch.commit_unit import CommitUnit
from headwater.listeners.capture.batch.lineage_filter import LineageFilter
from headwater.listeners.capture.batch.outside_statements import commits_outside_statements
from headwater.listeners.capture.batch.write_lineage import WriteLineage, lineage_of_read
from headwater.listeners.capture.catalog.views import gaps_of_view
from headwater.listeners.capture.commands import CommandRule
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.drafts import OwnedDrafts, Owner, gap_of, make_gap, name_of
from headwater.listeners.capture.plan.tree import PlanNode
from headwater.listeners.capture.plan_cache import ParsedPlan
from headwater.listeners.capture.records import StatementRecord
from headwater.listeners.capture.resolution import (
    RefusedWrite,
    ResolvedFunctionBatch,
    ResolvedStatement,
    invalid_record,
)
from headwater.listeners.capture.statements import Statement

_Write: TypeAlias = tuple[Statement, WriteLineage]
_NO_LINEAGE: Final = WriteLineage((), (), (), (), ())
_UNKNOWN_COMMIT: Final = "the statement failed after it had committed something, and what that did isn't known"


class StatementTranslator:
    """For one producer and one thread."""

    def __init__(self, context: CaptureContext, commits: CommitTranslator, lineage_filter: LineageFilter) -> None:
        self._context = context
        self._commits = commits
        self._lineage_filter = lineage_filter

    def drafts(self, resolved: ResolvedStatement) -> Iterator[OwnedDrafts]:
        declared, known = self._without_omitted(resolved.known)
        events = self._events_of(resolved.record, resolved.statement, known)
        if events is not None and self._context.degraded:
            events = chain(events, self._gaps_of_missing_parts(resolved.record, known))
        if declared or events is not None:
            yield OwnedDrafts(_owner(resolved, known.lineage), chain(declared, events or ()))

    def refused_write(self, refused: RefusedWrite) -> Iterator[OwnedDrafts]:
        """A write that analysis refused: reported as one that failed, with what is known of it."""
        lineage = self._lineage_filter.visible_part(refused.lineage)
        if lineage is not None:
            failed = self._commits.failure(refused.statement, lineage)
            yield OwnedDrafts(Owner(refused.record, _sink_of(lineage)), (failed,))

    def function_batch(self, resolved: ResolvedFunctionBatch) -> Iterator[OwnedDrafts]:
        """A micro-batch that a user's function was given: all that it wrote is one commit."""
        batch, owner = resolved.statement, _owner(resolved)
        done: list[_Write] = []
        failed: list[tuple[Owner, _Write]] = []
        for part in resolved.parts:
            if isinstance(part, ResolvedStatement):
                yield OwnedDrafts(_owner(part), self._events_of_part_safely(part, done, failed))
            elif isinstance(part, RefusedWrite):
                yield from self.refused_write(part)
            else:
                yield OwnedDrafts(replace(owner, record=part), (gap_of(part),))
        self._context.enter_session(batch.plan.catalogs, *(statement.plan.catalogs for statement, _ in done))
        if batch.failure is not None:
            read = lineage_of_read(batch.plan, self._context, resolved.known.node.plan_of("query"))
            whole = CommitUnit.merge([(batch, read), *(write for _, write in failed)])
            yield OwnedDrafts(owner, (self._commits.failure(batch, whole.shape),))
        else:
            for of_part, write in failed:
                yield OwnedDrafts(of_part, (self._commits.failure(*write),))
        if done:
            yield OwnedDrafts(owner, self._commits.events_of_unit(batch, CommitUnit.merge(done)))

    def _without_omitted(self, known: ParsedPlan) -> tuple[list[Event], ParsedPlan]:
        """What has to be reported of the catalogs that it uses, and the rest without what is kept back."""
        if known.lineage is None:
            return [], known
        declared: list[Event] = list(self._lineage_filter.declare_catalogs_of(known.lineage))
        shown = self._lineage_filter.visible_part(known.lineage)
        if shown is None and known.command is not None:
            known = replace(known, command=replace(known.command, write=None))
        return declared, replace(known, lineage=shown)

    def _events_of(self, record: StatementRecord, statement: Statement, known: ParsedPlan) -> Iterable[Event] | None:
        """None where nothing is to be reported of such a statement."""
        if record.reads_only and (statement.failure is not None or record.checkpoint_columns is not None):
            return None
        if known.fault is not None:
            return (make_gap(record, GapReason.CAPTURE_FAILED, known.fault),)
        if record.reads_only:
            return None if known.lineage is None else self._commits.events(statement, known.lineage)
        if known.command is None:
            return None if statement.failure is not None else (_unknown_command_gap(record, known),)
        return self._events_of_command(statement, known, known.command) if known.command.ignored is None else None

    def _gaps_of_missing_parts(self, record: StatementRecord, known: ParsedPlan) -> Iterator[Event]:
        for part in missing_parts(known.plan, self._context.degraded):
            detail = f"{part} isn't there: which versions of its tables this statement read or made isn't known"
            yield make_gap(record, GapReason.NOT_EXACT, detail)

    def _events_of_command(self, statement: Statement, known: ParsedPlan, command: CommandRule) -> Iterator[Event]:
        if statement.failure is not None:
            yield from self._events_of_failure(known.node, statement, known.lineage, command)
            return
        yield from self._catalog_events(statement, known, command)
        if known.lineage is not None:
            yield from self._commits.events(statement, known.lineage)
        elif command.write is not None:
            yield _unknown_write_gap(known)

    def _events_of_failure(
        self, node: PlanNode, statement: Statement, lineage: WriteLineage | None, command: CommandRule
    ) -> Iterator[Event]:
        """The failure, and what had been committed by then: that stays, whatever fails after it. A modification of a
        catalog that failed before it committed anything isn't recorded."""
        events = list(self._committed(node, statement, lineage, command))
        if lineage is None and not events:
            events = list(self._hook_commits(statement))
        if lineage is not None or events:
            yield self._commits.failure(statement, lineage or _NO_LINEAGE)
        yield from events

    def _committed(
        self, node: PlanNode, statement: Statement, lineage: WriteLineage | None, command: CommandRule
    ) -> Iterator[Event]:
        if command.proven and command.catalog is not None:
            yield from command.catalog(node, statement, self._context)
        if lineage is not None:
            yield from self._commits.events(statement, lineage)

    def _hook_commits(self, statement: Statement) -> Iterator[Event]:
        """What hooks noted, of a command that itself tells nothing of commits: ALTER TABLE of V2, for one."""
        found = list(commits_outside_statements(statement.facts.hook_facts, self._context, self._lineage_filter))
        for commit in found:
            yield from commit.altered
        outputs = tuple(output for commit in found for output in commit.outputs)
        if outputs:
            yield self._commits.outside_statement(outputs)
        if not all(commit.whole for commit in found):
            yield Gap(reason=GapReason.NOT_SUPPORTED, detail=_UNKNOWN_COMMIT)

    def _catalog_events(self, statement: Statement, known: ParsedPlan, command: CommandRule) -> Iterator[Event]:
        """What it did to catalogs."""
        if command.catalog is None:
            return
        for draft in command.catalog(known.node, statement, self._context):
            if isinstance(draft, CatalogModification):
                yield from self._lineage_filter.declare_catalog(draft.context.name)
            yield draft
            yield from gaps_of_view(draft, self._context)

    def _events_of_part_safely(
        self, part: ResolvedStatement, done: list[_Write], failed: list[tuple[Owner, _Write]]
    ) -> Iterator[Event]:
        """One that can't be read must not hide the others."""
        try:
            yield from self._events_of_part(part, done, failed)
        except Exception as e:  # noqa: BLE001 - it is reported as a Gap
            yield gap_of(invalid_record(part.record, e))

    def _events_of_part(
        self, part: ResolvedStatement, done: list[_Write], failed: list[tuple[Owner, _Write]]
    ) -> Iterator[Event]:
        """What it writes is recorded with the batch; what it does to catalogs, at once."""
        statement = part.statement
        declared, known = self._without_omitted(part.known)
        yield from declared
        if known.fault is not None:
            yield make_gap(part.record, GapReason.CAPTURE_FAILED, known.fault)
        elif known.command is None:
            yield _unknown_command_gap(part.record, known)
        elif known.command.ignored is not None:
            return
        elif known.lineage is not None and statement.failure is not None:
            failed.append((_owner(part), (statement, known.lineage)))
        elif statement.failure is None:
            yield from self._catalog_events(statement, known, known.command)
            if known.lineage is not None:
                done.append((statement, known.lineage))
            elif known.command.write is not None:
                yield _unknown_write_gap(known)


def _owner(resolved: ResolvedStatement, lineage: WriteLineage | None = None) -> Owner:
    stream = resolved.statement.stream
    return Owner(resolved.record, _sink_of(lineage), None if stream is None else stream.run)


def _sink_of(lineage: WriteLineage | None) -> str | None:
    return name_of(lineage.parts[0].part.target.sink) if lineage is not None and lineage.parts else None


def _unknown_command_gap(record: StatementRecord, known: ParsedPlan) -> Gap:
    return make_gap(record, GapReason.NOT_SUPPORTED, f"{known.node.name} isn't known to headwater")


def _unknown_write_gap(known: ParsedPlan) -> Gap:
    return Gap(reason=GapReason.NOT_SUPPORTED, detail=f"what this {known.node.name} writes can't be recorded")
