"""Plans by their shapes: the SQL listener tells each once, and it is read once.

How many are kept is bounded by what they take of memory. Which ones were given up is reported to the SQL listener
before the next records are taken, so that it tells them again when a statement needs them.

About how many bytes of memory plans and their lineage take: counted, as measuring takes longer than reading them.

The figures are CPython's, of 3.10 to 3.13. tests/unit/plan/test_plan_sizes.py holds them to what tracemalloc says.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

from headwater.errors import HeadwaterError
from headwater.events.column_lineage import Derivation
from headwater.events.tables import Watermark
from headwater.listeners.capture.batch.write_lineage import WriteLineage, lineage_of_read, lineage_of_write
from headwater.listeners.capture.command_registry import all_commands
from headwater.listeners.capture.commands import CommandRule
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.formats import plugins
from headwater.listeners.capture.plan.columns import lineage_of
from headwater.listeners.capture.plan.tree import Plan, PlanNode
from headwater.listeners.capture.records import StatementRecord

_TEXT: Final = 58
"""A text beside its characters."""
_NUMBER: Final = 32
_SMALLEST_NUMBER, _LARGEST_NUMBER = -5, 256
"""Numbers between these are CPython's own, and take no room."""
_LIST: Final = 72
_REFERENCE: Final = 8
_ENTRY: Final = 40
"""Of a dictionary, beside key and value. Keys are shared."""
_DICTIONARY: Final = 100
_ATTRIBUTE: Final = 130
_EXPRESSION: Final = 130
_NODE_BYTES: Final = 180
_EDGE: Final = 1_100
_COLUMN: Final = 1_200
_LEAF: Final = 3_000
"""A source or sink, or a leaf, beside its columns."""


def size_of_plan(plan: Plan) -> int:
    """What was parsed, with its arguments as JSON has them."""
    found = 0
    reference = _REFERENCE if len(plan.attributes) <= _LARGEST_NUMBER else _REFERENCE + _NUMBER
    for text in plan.types:
        found += _TEXT + len(text)
    for attribute in plan.attributes:
        if attribute is not None:
            found += _ATTRIBUTE + _TEXT + len(attribute.name)
    for expression in plan.expressions:
        found += _EXPRESSION + reference * len(expression.inputs)
        if expression.details:
            found += _size_of_json(expression.details)
    for node in plan.nodes:
        found += _NODE_BYTES + reference * (len(node.inputs) + len(node.output)) + _size_of_json(node.args)
    return found


def size_of_lineage(lineage: WriteLineage) -> int:
    """Sources, leaves, sinks and edges; what they share is counted once."""
    found = _LEAF * (len(lineage.sources) + len(lineage.parts) + len(lineage.leaves))
    for source in lineage.sources:
        found += _COLUMN * len(source.columns)
    for resolved in lineage.parts:
        found += _COLUMN * len(resolved.part.target.sink.columns)
    found += _EDGE * len(lineage.columns)
    return found + _size_of_texts(edge.expression for edge in lineage.columns)


def _size_of_texts(texts: Iterable[str | None]) -> int:
    """Edges into one column share its text."""
    found, last = 0, None
    for text in texts:
        if text is not None and text is not last:
            found += _TEXT + len(text)
        last = text
    return found


def _size_of_json(value: Any) -> int:
    found, waiting = 0, [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            found += _TEXT + len(each)
        elif isinstance(each, dict):
            found += _DICTIONARY + _ENTRY * len(each)
            waiting.extend(each.values())
        elif isinstance(each, list):
            found += _LIST + _REFERENCE * len(each)
            waiting.extend(each)
        elif isinstance(each, float) or (each is not None and not _SMALLEST_NUMBER <= each <= _LARGEST_NUMBER):
            found += _NUMBER
    return found


_LOG = logging.getLogger(__name__)
ALL: Final = "*"
"""In the place of digests: nobody knows which plans were lost."""


class UnknownPlanError(HeadwaterError):
    """A record refers to a plan that isn't there."""


@dataclass(frozen=True)
class ParsedPlan:
    """What is known of a shape. A fault is reported each time a statement has it, not looked for each time."""

    plan: Plan
    node: PlanNode
    command: CommandRule | None
    lineage: WriteLineage | None
    fault: str | None

    @cached_property
    def size(self) -> int:
        """About how many bytes it takes."""
        return size_of_plan(self.plan) + (0 if self.lineage is None else size_of_lineage(self.lineage))


class PlanCache:
    """For one thread."""

    def __init__(self, context: CaptureContext, max_bytes: int) -> None:
        self._context = context
        self._max_bytes = max_bytes
        self._bytes = 0
        self._plans: OrderedDict[str, ParsedPlan] = OrderedDict()
        self._unread: dict[str, Mapping[str, Any]] = {}
        self._forgotten: list[str] = []

    def offer(self, plans: Mapping[str, Mapping[str, Any]]) -> None:
        """Plans that a record brings along, by their digests: each is read when the record asks for it."""
        self._unread.update(plans)

    def parsed_plan(self, record: StatementRecord) -> ParsedPlan:
        """What is known of the plan that a record refers to; an UnknownPlanError if it isn't there."""
        digest = record.plan_digest
        content = self._unread.pop(digest, None)
        if content is not None:
            self._drop(digest)
            self._forgotten.append(digest)  # as long as it isn't read
            parsed = self._parse(Plan.parse(content), reading=record.reads_only)
            self._forgotten.pop()
            self._plans[digest] = parsed
            self._bytes += parsed.size
        elif digest in self._plans:
            self._plans.move_to_end(digest)
        else:
            self._forgotten.append(digest)
            raise UnknownPlanError("the plan of this statement was lost on its way; the next one brings it again")
        return self._plans[digest]

    def take_forgotten(self) -> list[str]:
        """Give up what is too much, the plans that weren't asked for the longest first, and return the digests of all
        that was given up since the last call."""
        while self._bytes > self._max_bytes and len(self._plans) > 1:
            digest = next(iter(self._plans))
            self._drop(digest)
            self._forgotten.append(digest)
        self._forgotten += self._unread
        self._unread.clear()
        found, self._forgotten = self._forgotten, []
        return found

    def _drop(self, digest: str) -> None:
        dropped = self._plans.pop(digest, None)
        self._bytes -= 0 if dropped is None else dropped.size

    def _parse(self, plan: Plan, *, reading: bool) -> ParsedPlan:
        self._context.enter_session(plan.catalogs)
        node = plan.top if reading else _find_command(plan)
        command = None if reading else all_commands().get(node.name)
        if not reading and sum(plan.nodes[index].name in all_commands() for index in plan.top.inputs) > 1:
            return ParsedPlan(plan, node, command, None, "this Spark runs several INSERTs of one FROM as one execution")
        if any(_is_within_procedure(node, self._context) for node in plan.nodes):
            command = _WITHIN_PROCEDURE
        if not reading and (command is None or command.write is None):
            return ParsedPlan(plan, node, command, None, None)
        try:
            lineage = self._lineage_of(plan, node, command)
        except Exception as e:  # noqa: BLE001 - a plan can be anything; the statement is reported as a Gap
            _LOG.debug("a plan couldn't be read", exc_info=True)
            return ParsedPlan(plan, node, command, None, f"{node.name} can't be read: {type(e).__name__}: {e}")
        return ParsedPlan(plan, node, command, lineage, None)

    def _lineage_of(self, plan: Plan, node: PlanNode, command: CommandRule | None) -> WriteLineage | None:
        if command is None or command.write is None:
            return lineage_of_read(plan, self._context)
        write = command.write(node, plan, self._context)
        return None if write is None else with_watermarks(lineage_of_write(write, plan, self._context), plan)


_WITHIN_PROCEDURE: Final = CommandRule(ignored="a procedure rewrites files: what it commits is recorded with its call")


def _is_within_procedure(relation: PlanNode, context: CaptureContext) -> bool:
    """Whether a procedure works here, on a thread of its own: Spark 4 shows that as a statement."""
    catalog = relation.args.get("catalog") if relation.name == "DataSourceV2Relation" else None
    if not catalog:
        return False
    class_name = context.catalog(catalog).class_name
    return any(class_name in plugin.procedure_catalogs for plugin in plugins())


def _find_command(plan: Plan) -> PlanNode:
    """The command of a plan: its top, or what stands right below what only wraps it."""
    for index in (plan.root, *plan.top.inputs):
        if plan.nodes[index].name in all_commands():
            return plan.nodes[index]
    return plan.top


_NODE: Final = "EventTimeWatermark"


def with_watermarks(lineage: WriteLineage, plan: Plan) -> WriteLineage:
    """The shape, its sources with the watermarks that the query sets on their columns as they are. One on a column that
    the query makes is no source's."""
    sources = list(lineage.sources)
    for node in plan.nodes:
        if node.name == _NODE:
            for leaf, watermark in _watermarks_set(node, plan):
                number = next((known.source for known in lineage.leaves if known.relation.node == leaf), None)
                if number is not None and watermark not in sources[number].watermarks:
                    marks = (*sources[number].watermarks, watermark)
                    sources[number] = sources[number].model_copy(update={"watermarks": marks})
    return replace(lineage, sources=tuple(sources))


def _watermarks_set(node: PlanNode, plan: Plan) -> Iterator[tuple[int, Watermark]]:
    delay = node.args.get("delay")
    for reference in node.expressions_of("eventTime"):
        if reference >= 0 or not isinstance(delay, str):
            continue
        for origin in lineage_of(plan, node.inputs[0]).columns.get(-1 - reference, ()):
            if origin.derivation is Derivation.IDENTITY:
                yield origin.leaf, Watermark(column=origin.path, delay=delay)
