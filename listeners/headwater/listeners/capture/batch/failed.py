"""Statements that failed: the failure, and what had been committed by then. A commit stays, whatever fails after it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from headwater.events import Event, Gap, GapReason
from headwater.listeners.capture.batch.commits import By, Commits
from headwater.listeners.capture.batch.loose import loose
from headwater.listeners.capture.batch.omitted import Omitting
from headwater.listeners.capture.batch.shapes import ShapeOfWrite
from headwater.listeners.capture.commands import Command
from headwater.listeners.capture.plan.tree import Node
from headwater.listeners.capture.scene import Scene
from headwater.listeners.capture.statements import Statement

_UNSHAPED: Final = ShapeOfWrite((), (), (), (), ())
_UNTOLD: Final = "the statement failed after it had committed something, and what that did isn't known"


class Failures:
    def __init__(self, scene: Scene, commits: Commits, omitting: Omitting) -> None:
        self._scene = scene
        self._commits = commits
        self._omitting = omitting

    def events(
        self, node: Node, statement: Statement, shape: ShapeOfWrite | None, command: Command, by: By
    ) -> Iterator[Event]:
        """Drafts, in order. A modification of a catalog that failed before it committed anything is told by nothing."""
        told = list(self._committed(node, statement, shape, command, by))
        if shape is None and not told:
            told = list(self._left(statement, by))
        if shape is not None or told:
            yield self._commits.failed(statement, shape or _UNSHAPED, by)
        yield from told

    def _committed(
        self, node: Node, statement: Statement, shape: ShapeOfWrite | None, command: Command, by: By
    ) -> Iterator[Event]:
        if command.proven and command.catalog is not None:
            yield from command.catalog(node, statement, self._scene)
        if shape is not None:
            yield from self._commits.events(statement, shape, by)

    def _left(self, statement: Statement, by: By) -> Iterator[Event]:
        """What hooks noted, of a command that itself tells nothing of commits: ALTER TABLE of V2, for one."""
        found = list(loose(statement.facts.noted, self._scene, self._omitting))
        for each in found:
            yield from each.altered
        outputs = tuple(output for each in found for output in each.outputs)
        if outputs:
            yield self._commits.loose(outputs, by)
        if not all(each.whole for each in found):
            yield Gap(reason=GapReason.NOT_SUPPORTED, detail=_UNTOLD)
