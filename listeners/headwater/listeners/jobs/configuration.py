"""What of an application's configuration is worth reporting. Secrets are taken out of it as of every event."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from headwater.listeners.settings import PREFIX
from headwater.spi.factories import RESERVED_NAMES

_SPARK_PREFIX: Final = "spark."
_EXCLUDED_KEYS: Final = frozenset(
    {
        "spark.app.id",
        "spark.app.name",
        "spark.app.startTime",
        "spark.app.submitTime",
        "spark.driver.extraJavaOptions",
        "spark.driver.host",
        "spark.driver.port",
        "spark.executor.extraJavaOptions",
        "spark.executor.id",
        "spark.files",
        "spark.jars.ivy",
        "spark.rdd.compress",
        "spark.serializer.objectStreamReset",
        "spark.submit.pyFiles",
    }
)
"""Reported elsewhere, the same for everybody, or made anew by each start."""
_EXCLUDED_PREFIXES: Final = (
    "spark.app.initial.",
    "spark.authenticate",
    "spark.driver.defaultJavaOptions",
    "spark.driverEnv.",
    "spark.executor.defaultJavaOptions",
    "spark.executorEnv.",
    "spark.history.",
    "spark.io.encryption.",
    "spark.kubernetes.",
    "spark.mesos.",
    "spark.network.crypto.",
    "spark.org.apache.hadoop.",
    "spark.plugins.",
    "spark.repl.",
    "spark.ssl.",
    "spark.ui.",
    "spark.yarn.",
)
"""The cluster's own affairs, and environments, in which anything can stand."""


def select_configuration(configuration: Mapping[str, str]) -> dict[str, str]:
    """The keys that say how this job runs, those of headwater's listeners (brokers, passwords) left out."""
    return {key: value for key, value in configuration.items() if _is_reported(key)}


def _is_reported(key: str) -> bool:
    if not key.startswith(_SPARK_PREFIX) or key in _EXCLUDED_KEYS or key.startswith(_EXCLUDED_PREFIXES):
        return False
    return not key.startswith(PREFIX) or key[len(PREFIX) :].partition(".")[0] in RESERVED_NAMES
