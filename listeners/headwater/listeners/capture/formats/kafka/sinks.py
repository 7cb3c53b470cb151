"""Which topics are written: that of an option, or those that the rows name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from headwater.events import DatasetId, Format
from headwater.events.base import StringMap
from headwater.events.identity import IdentityError, kafka_namespace, kafka_topic
from headwater.events.identity.text import lower_keys
from headwater.events.jobs import CommitKind, OverwriteScope, SinkSchema
from headwater.events.scalars import FieldPath
from headwater.events.tables import Column
from headwater.listeners.capture.context import CaptureContext, KnownFormats
from headwater.listeners.capture.formats.external_rows import external_options
from headwater.listeners.capture.formats.kafka.sources import SERVERS, options_of, reported_options
from headwater.listeners.capture.formats.protocol import SinkWrite, WriteResult, WriteTarget
from headwater.listeners.capture.formats.relations import columns_of
from headwater.listeners.capture.plan.tree import Plan, PlanNode

_SOURCE: Final = "org.apache.spark.sql.kafka010.KafkaSourceProvider"
_TOPIC: Final = "topic"
_FIELDS: Final = ("key", "value", "headers", "partition", _TOPIC)
"""Columns that mean something to Spark's writer; it leaves the others."""
_COMPUTED_TOPIC: Final = "which topics were written isn't known: the rows' column topic is computed"

Branches = dict[int, dict[int, None]]


def find_sinks(node: PlanNode, plan: Plan, context: CaptureContext) -> tuple[SinkWrite, ...]:
    """A topic each, of what a command or a stream's micro-batch writes; none where it isn't Kafka's."""
    options, query = _options(node, plan, context.formats), node.plan_of("query")
    if options is None or query is None:
        return ()
    chosen = options.get(_TOPIC)
    named: Mapping[str | None, Branches] = {chosen: {}} if chosen else _topics_of_rows(node)
    columns = _columns(plan, query, by_rows=not chosen and None in named)
    written = [n for n, column in zip(plan.nodes[query].output, columns, strict=True) if column is not None]
    return tuple(
        SinkWrite(
            _target(topic, options, columns_of(plan, written), context),
            query,
            columns,
            only={union: tuple(sorted(inputs)) for union, inputs in branches.items()} if len(named) > 1 else {},
        )
        for topic, branches in named.items()
    )


def _options(node: PlanNode, plan: Plan, formats: KnownFormats) -> dict[str, str] | None:
    """Those of the write, over those of the relation that it writes."""
    if (node.args.get("dataSource") or {}).get("class") == _SOURCE:
        return lower_keys(node.args.get("options", {}))
    in_catalog = external_options(node, "kafka", formats)
    if in_catalog is not None:
        return lower_keys(in_catalog)
    table = node.plan_of("table")
    options = options_of(plan.nodes[table]) if table is not None else None
    if options is None and "kafka" in (node.args.get("table") or {}):
        options = {}
    return None if options is None else {**options, **lower_keys(node.args.get("writeOptions", {}))}


def _topics_of_rows(node: PlanNode) -> dict[str | None, Branches]:
    """By topic: of which inputs of which UNIONs its rows are. None: the rows of a topic that is computed."""
    found: dict[str | None, Branches] = {}
    for topic in node.args.get("kafka", {}).get("topics", ()):
        branches = found.setdefault(topic.get("topic"), {})
        for union, place in topic["branches"]:
            branches.setdefault(union, {})[place] = None
    return found or {None: {}}


def _columns(plan: Plan, query: int, *, by_rows: bool) -> tuple[FieldPath | None, ...]:
    meant = _FIELDS if by_rows else _FIELDS[:-1]
    names = (plan.attribute(number).name for number in plan.nodes[query].output)
    return tuple((name,) if name in meant else None for name in names)


def _target(
    topic: str | None, options: Mapping[str, str], columns: tuple[Column, ...], context: CaptureContext
) -> WriteTarget:
    dataset, opaque = _topic_ref(topic, options.get(SERVERS, ""), context)
    shaped = SinkSchema(
        dataset=dataset,
        opaque=opaque,
        format=Format.KAFKA,
        columns=columns,
        options=StringMap(reported_options(options)),
    )
    return WriteTarget(shaped, kind=CommitKind.APPEND, replaced=OverwriteScope.NOTHING)


def _topic_ref(topic: str | None, servers: str, context: CaptureContext) -> tuple[DatasetId | None, str | None]:
    try:
        if topic is not None:
            return kafka_topic(servers, topic, context.environment), None
        return None, f"topics at {kafka_namespace(servers, context.environment)} that the rows name"
    except IdentityError:
        return None, "a topic of Kafka"


def write_result(target: WriteTarget) -> WriteResult:
    """How many rows went there, Spark doesn't count."""
    output = target.output(commit_kind=CommitKind.APPEND, replaced=OverwriteScope.NOTHING)
    return WriteResult((output,), gap=_COMPUTED_TOPIC if target.sink.dataset is None else None)
