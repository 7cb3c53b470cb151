"""The Spark session of `headwater pipeline run`."""

from __future__ import annotations

import importlib
import logging
import os
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager, nullcontext
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from headwater.config.spark_submit import java_on_standard_error, spark_properties
from headwater.consumers.spark.pipeline.kafka_topic import kafka_package
from headwater.consumers.spark.session import MissingSparkError
from headwater.errors import ConfigurationError
from headwater.events.redaction import redacted_excerpt
from headwater.lineage.lake import LakeAddress
from headwater.lineage.lake.formats import format_of
from headwater.plugins import extra_command

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG: Final = logging.getLogger(__name__)
APP_NAME: Final = "headwater-pipeline"
_ENABLED: Final = "spark.headwater.enabled"
_LISTENERS: Final = "spark.headwater.listeners"


@contextmanager
def pipeline_session(
    conf: Mapping[str, str], *, master: str | None = None, reads_kafka: bool = True, lake: LakeAddress | None = None
) -> Generator[SparkSession]:
    """Yield the session that spark-submit prepared, or a new one with this configuration, and stop it in the end.

    Under spark-submit the configuration is that of its command line. Without it, Spark's Kafka source, and the
    format of a lake, are fetched unless `conf` names jars. headwater watches this session if its configuration has
    `spark.headwater.enabled = true`.
    """
    try:
        pyspark = importlib.import_module("pyspark")
        sql = importlib.import_module("pyspark.sql")
    except ImportError as e:
        raise MissingSparkError(
            "a pipeline needs pyspark, which isn't installed here: use the interpreter of the cluster, or "
            f"{extra_command('spark')}"
        ) from e
    submitted = _is_submitted(pyspark)
    version = str(pyspark.__version__)
    defaults = {} if submitted else _defaults(version, lake, reads_kafka=reads_kafka)
    settings = {**defaults, **conf}
    if master is not None:
        settings["spark.master"] = master
    builder: Any = sql.SparkSession.builder
    for key, value in settings.items() if submitted else ():
        builder = builder.config(key, value)
    try:
        with java_on_standard_error(), nullcontext() if submitted else spark_properties(settings):
            spark: SparkSession = builder.getOrCreate()
    except ConfigurationError:
        raise
    except Exception as e:
        raise ConfigurationError(f"Spark doesn't start: {redacted_excerpt(str(e), 1_000)}") from e
    _warn_if_unwatched(spark)
    try:
        yield spark
    finally:
        spark.stop()


def _warn_if_unwatched(spark: SparkSession) -> None:
    """Warn of listeners that get nothing. A pipeline never calls `install`, as a job of a user may."""
    if spark.conf.get(_LISTENERS, None) and spark.conf.get(_ENABLED, None) is None:
        _LOG.warning(
            "%s is set, but headwater doesn't watch this job: set %s to true, or leave both out", _LISTENERS, _ENABLED
        )


def require_arrow() -> None:
    """Raise a MissingSparkError that names the packages by which Spark hands records to Python, if one is missing."""
    missing = [name for name in ("pandas", "pyarrow") if find_spec(name) is None]
    if missing:
        raise MissingSparkError(
            f"Spark hands records to Python by {' and '.join(missing)}, which this Python lacks: "
            "pip install 'pyspark[sql]' here and where executors run"
        )


def _is_submitted(pyspark: Any) -> bool:
    """Return whether spark-submit started this process."""
    return "PYSPARK_GATEWAY_PORT" in os.environ or getattr(pyspark.SparkContext, "_gateway", None) is not None


def _defaults(version: str, lake: LakeAddress | None, *, reads_kafka: bool) -> dict[str, str]:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    names = [kafka_package(version)] if reads_kafka else []
    names += [] if lake is None else [format_of(lake).package(version)]
    packages = {"spark.jars.packages": ",".join(names)} if names else {}
    if lake is not None:
        packages["spark.sql.extensions"] = format_of(lake).extensions
    return {
        "spark.app.name": APP_NAME,
        "spark.master": "local[*]",
        "spark.ui.showConsoleProgress": "false",
        **packages,
    }
