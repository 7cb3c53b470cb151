"""Statements that failed: the failure, and what had been committed by then. A commit stays, whatever fails after it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from headwater.events import Event, Gap
from headwater.events.health import GapReason
from headwater.listeners.capture.batch.commit_translator import CommitTranslator
from headwater.listeners.capture.batch.lineage_filter import LineageFilter
from headwater.listeners.capture.batch.outside_statements import commits_outside_statements
from headwater.listeners.capture.batch.write_lineage import WriteLineage
from headwater.listeners.capture.commands import CommandRule
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.plan.tree import PlanNode
from headwater.listeners.capture.statements import Statement

_NO_LINEAGE: Final = WriteLineage((), (), (), (), ())
_UNKNOWN_COMMIT: Final = "the statement failed after it had committed something, and what that did isn't known"


class FailureTranslator:
    def __init__(self, context: CaptureContext, commits: CommitTranslator, lineage_filter: LineageFilter) -> None:
        self._context = context
        self._commits = commits
        self._lineage_filter = lineage_filter

    def events(
        self, node: PlanNode, statement: Statement, lineage: WriteLineage | None, command: CommandRule
    ) -> Iterator[Event]:
        """Drafts, in order. A modification of a catalog that failed before it committed anything isn't recorded."""
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
