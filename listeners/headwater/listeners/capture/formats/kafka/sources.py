"""Which topics a relation of Kafka's reads, in batches and in streams."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from headwater.events import DatasetId, Format, ShapedSource
from headwater.events.base import Texts
from headwater.events.identity import IdentityError, kafka_read
from headwater.events.identity.text import lower_keys
from headwater.listeners.capture.formats.protocol import Described
from headwater.listeners.capture.formats.relations import STREAMS, columns_of, stream_options, table_name
from headwater.listeners.capture.plan.tree import Node, Plan
from headwater.listeners.capture.scene import Scene

SERVERS: Final = "kafka.bootstrap.servers"
STRATEGIES: Final = ("subscribe", "subscribepattern", "assign")
_TOLD: Final = frozenset(
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
"""Options that are told. The others are between Spark's client and the broker: that is where secrets are."""


@dataclass(frozen=True)
class Subscription:
    """By which a leaf of a shape and what was read of it know each other."""

    servers: str
    strategy: str
    topics: str

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Subscription | None:
        strategy = next((each for each in STRATEGIES if options.get(each)), None)
        return None if strategy is None else cls(options.get(SERVERS, ""), strategy, options[strategy])


def told(options: Mapping[str, str]) -> dict[str, str]:
    """Of options in any case, those that may be told."""
    return {key: text for key, text in lower_keys(options).items() if key in _TOLD}


def told_of_table(options: Mapping[str, str]) -> dict[str, str]:
    """Those of a table that was made USING kafka: also where its rows are."""
    return {key: text for key, text in lower_keys(options).items() if key in _TOLD or key == SERVERS}


def options_of(node: Node) -> dict[str, str] | None:
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


def source(node: Node, plan: Plan, scene: Scene) -> Described | None:
    options = options_of(node)
    if options is None:
        return None
    shaped = ShapedSource(
        dataset=None, format=Format.KAFKA, columns=columns_of(plan, node.output), options=Texts(told(options))
    )
    hints = {"subscription": Subscription.of(options), "attributes": node.output, "site": scene.site}
    described = Described(node.index, shaped, versioned=True, hints=hints)
    name = table_name(node.args.get("catalogTable"))
    topics = topics_as(described, _datasets(options, scene))
    if not topics:
        opaque = None if name is not None else f"topics of Kafka: {options.get('subscribepattern', '')}".rstrip(": ")
        return replace(described, source=shaped.model_copy(update={"table": name, "opaque": opaque}))
    if len(topics) == 1 and name is not None:
        only = topics[0].source.model_copy(update={"table": name})
        return replace(topics[0], source=only)
    return replace(topics[0], also=topics[1:])


def topics_as(described: Described, datasets: Iterable[DatasetId]) -> tuple[Described, ...]:
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


def _datasets(options: Mapping[str, str], scene: Scene) -> tuple[DatasetId, ...]:
    """Of a pattern none: which topics it means shows when it is read."""
    try:
        return kafka_read(options, scene.site).datasets
    except IdentityError:
        return ()
