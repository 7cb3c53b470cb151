"""Which statements a part of the Java side would have recorded more of, had it fitted the driver's Spark and
formats."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from headwater.listeners.capture.plan.tree import Plan

_PACKAGES: Final[Mapping[str, tuple[str, ...]]] = {
    "DeltaExtractor": ("org.apache.spark.sql.delta.", "io.delta."),
    "HudiExtractor": ("org.apache.hudi.", "org.apache.spark.sql.hudi."),
    "IcebergExtractor": ("org.apache.iceberg.",),
    "JdbcExtractor": ("org.apache.spark.sql.execution.datasources.jdbc.", "org.apache.spark.sql.jdbc."),
    "KafkaExtractor": ("org.apache.spark.sql.kafka010.",),
    "PaimonExtractor": ("org.apache.paimon.",),
}


def missing_parts(plan: Plan, degraded: Iterable[str]) -> Iterator[str]:
    """Those of the parts that aren't there whose format this plan reads or writes."""
    for part in degraded:
        packages = _PACKAGES.get(part, ())
        if packages and any(name.startswith(packages) for name in _class_names(plan)):
            yield part


def _class_names(plan: Plan) -> Iterator[str]:
    for node in plan.nodes:
        if node.class_name is not None:
            yield node.class_name
        waiting: list[Any] = list(node.args.values())
        while waiting:
            value = waiting.pop()
            if isinstance(value, str):
                yield value
            elif isinstance(value, Mapping):
                waiting.extend(value.values())
            elif isinstance(value, list):
                waiting.extend(value)
