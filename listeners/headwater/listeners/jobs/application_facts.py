"""What is known of the application that headwater sits in, read once when it starts."""

from __future__ import annotations

import logging
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from headwater.events.jobs import SparkDetails
from headwater.jvm.loader import java_class
from headwater.plugins import own_version

_LOG = logging.getLogger(__name__)
_CODE_VERSION: Final = "spark.headwater.job.code.version"
_CODE_VERSION_VARIABLE: Final = "HEADWATER_JOB_CODE_VERSION"

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class ApplicationFacts:
    """Plain values only: nothing of it asks the JVM."""

    id: str
    name: str
    spark: SparkDetails
    user: str | None = None
    configuration: Mapping[str, str] = field(default_factory=dict, repr=False)
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    headwater_version: str | None = None

    @property
    def code_version(self) -> str | None:
        """What the configuration says, else the environment: nobody else knows which code really runs."""
        return self.configuration.get(_CODE_VERSION) or self.environment.get(_CODE_VERSION_VARIABLE) or None


def read_application_facts(
    context: Any, configuration: Mapping[str, str], environment: Mapping[str, str]
) -> ApplicationFacts:
    """Out of a SparkContext; what it doesn't tell is left out."""
    spark = context._jsc.sc()
    system, scala = (java_class(context._gateway, name) for name in ("java.lang.System", "scala.util.Properties"))
    name = configuration.get("spark.app.name", "")
    return ApplicationFacts(
        id=_ask_or_none("id", spark.applicationId) or configuration.get("spark.app.id", ""),
        name=name,
        user=_ask_or_none("user", spark.sparkUser),
        configuration=configuration,
        environment=environment,
        headwater_version=own_version(),
        spark=SparkDetails(
            version=_ask_or_none("version", spark.version) or "",
            application_name=name,
            attempt=_ask_or_none("attempt", lambda: _unwrap_option(spark.applicationAttemptId())),
            master=_ask_or_none("master", spark.master),
            deploy_mode=_ask_or_none("deploy mode", spark.deployMode),
            java=_ask_or_none("Java", lambda: system.getProperty("java.version")),
            scala=_ask_or_none("Scala", lambda: str(scala.versionNumberString())),
            python=platform.python_version(),
        ),
    )


def _ask_or_none(what: str, ask: Callable[[], T]) -> T | None:
    try:
        return ask()
    except Exception as e:  # noqa: BLE001 - py4j raises what it likes; the rest can still be recorded
        _LOG.debug("the application's %s isn't known: %s", what, e)
        return None


def _unwrap_option(option: Any) -> str | None:
    return str(option.get()) if option.isDefined() else None
