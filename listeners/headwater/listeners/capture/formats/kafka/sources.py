"""Which topics a relation of Kafka's reads, in batches and in streams."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from headwater.events import DatasetId, Format
from headwater.events.base import StringMap
from headwater.events.identity import Environment, IdentityError, dataset_of_source, kafka_read
from headwater.events.identity.text import lower_keys
from headwater.events.jobs import SourceSchema
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.formats.protocol import SourceRelation
from headwater.listeners.capture.formats.relations import STREAMS, columns_of, stream_options, table_name
from headwater.listeners.capture.plan.tree import Plan, PlanNode

SERVERS: Final = "kafka.bootstrap.servers"
STRATEGIES: Final = ("subscribe", "subscribepattern", "assign")
_REPORTED_OPTIONS: Final = frozenset(
    {
        *STRATEGIES,
        "startingoffsets",
        "startingoffsetsbytimestamp",
        "startingoffsetsbytimestampstrategy",
        "startingtimestamp",
        "endingoffsets",
        "endingoffsetsbytimestamp",
        "endingtimestamp",
        "failondataloss",
        "groupidprefix",
        "includeheaders",
        "kafka.group.id",
        "maxoffsetspertrigger",
        "minoffsetspertrigger",
        "maxtriggerdelay",
        "minpartitions",
        "topic",
    }
)
"""Options that are recorded. The others are between Spark's client and the broker: that is where secrets are."""


@dataclass(frozen=True)
class Subscription:
    """By which a leaf of a shape and what was read of it know each other."""

    servers: str
    strategy: str
    topics: str

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Subscription | None:
        strategy = next((strategy for strategy in STRATEGIES if options.get(strategy)), None)
        return None if strategy is None else cls(options.get(SERVERS, ""), strategy, options[strategy])


def reported_options(options: Mapping[str, str]) -> dict[str, str]:
    """Of options in any case, those that may be recorded."""
    return {key: text for key, text in lower_keys(options).items() if key in _REPORTED_OPTIONS}


def dataset_of_table(options: Mapping[str, str], environment: Environment) -> DatasetId | None:
    """Of a table that was made USING kafka; None where it is several topics."""
    found = dataset_of_source("kafka", options, environment).datasets
    return found[0] if len(found) == 1 else None


def reported_table_options(options: Mapping[str, str]) -> dict[str, str]:
    """Those of a table that was made USING kafka: also where its rows are."""
    return {key: text for key, text in lower_keys(options).items() if key in _REPORTED_OPTIONS or key == SERVERS}


def options_of(node: PlanNode) -> dict[str, str] | None:
    """The options of a relation of Kafka's; None where it is none."""
    if node.name == "LogicalRelation":
        return _options(node.args.get("relation"))
    if _options(node.args.get("table")) is None:
        return None
    if node.name == "DataSourceV2Relation":
        return lower_keys(node.args.get("options", {}))
    return stream_options(node) if node.name in STREAMS else None


def _options(holder: Any) -> dict[str, str] | None:
    return lower_keys(holder["kafka"]) if isinstance(holder, Mapping) and "kafka" in holder else None


def source(node: PlanNode, plan: Plan, context: CaptureContext) -> SourceRelation | None:
    options = options_of(node)
    if options is None:
        return None
    shaped = SourceSchema(
        dataset=None,
        format=Format.KAFKA,
        columns=columns_of(plan, node.output),
        options=StringMap(reported_options(options)),
    )
    hints = {"subscription": Subscription.of(options), "attributes": node.output, "environment": context.environment}
    described = SourceRelation(node.index, shaped, versioned=True, hints=hints)
    name = table_name(node.args.get("catalogTable"))
    topics = with_topics(described, _datasets(options, context))
    if not topics:
        opaque = None if name is not None else f"topics of Kafka: {options.get('subscribepattern', '')}".rstrip(": ")
        return replace(described, source=shaped.model_copy(update={"table": name, "opaque": opaque}))
    if len(topics) == 1 and name is not None:
        only = topics[0].source.model_copy(update={"table": name})
        return replace(topics[0], source=only)
    return replace(topics[0], also=topics[1:])


def with_topics(described: SourceRelation, datasets: Iterable[DatasetId]) -> tuple[SourceRelation, ...]:
    """The same relation, once for each of these topics."""
    shaped = described.source
    return tuple(
        replace(
            described,
            source=shaped.model_copy(update={"dataset": dataset, "table": None, "opaque": None}),
            hints={**described.hints, "topic": dataset.name},
        )
        for dataset in datasets
    )


def _datasets(options: Mapping[str, str], context: CaptureContext) -> tuple[DatasetId, ...]:
    """Of a pattern none: which topics it means shows when it is read."""
    try:
        return kafka_read(options, context.environment).datasets
    except IdentityError:
        return ()
