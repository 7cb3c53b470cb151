"""An application when it starts: its name, its facts, and what of its configuration is worth reporting."""

from __future__ import annotations

import hashlib
import logging
import platform
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from headwater.events.jobs import SparkDetails
from headwater.events.names import JobName
from headwater.jvm.loader import java_class
from headwater.listeners.settings import PREFIX
from headwater.plugins import own_version
from headwater.spi.factories import RESERVED_NAMES

NAME: Final = "spark.headwater.job.name"
NAMESPACE: Final = "spark.headwater.job.namespace"
UNNAMED: Final = "unnamed"
_MAX_NAME_LENGTH: Final = 512
_BREAKS: Final = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_HIDDEN: Final = "*********(redacted)"
"""What Spark itself puts in the place of values that look like secrets to it."""

# What shells, servers and notebooks are called by default: everybody's are called so.
_GENERIC: Final = re.compile(
    r"""
      pyspark | py-?spark-?shell | spark[ -]?shell | spark-?r-?shell | spark-?sql | sparksql::.* | databricks[ ]shell
    | thrift[ ]jdbc/odbc[ ]server | spark[ ]?connect([ ]server)? | zeppelin([-_ ].*)? | (apache[ ])?toree([ ].*)?
    | livy(-session-\d+)? | sparkmagic | remotesparkmagics | jupyter(lab|hub)?([-_ ]notebook)?
    | ipykernel_launcher(\.py)? | ipython | notebook | untitled\d*(\.ipynb)? | unnamed | __main__(\.py)?
    | org\.apache\.spark\..*
    """,
    re.VERBOSE | re.IGNORECASE,
)


def clean_name(name: str) -> str:
    """A name on one line, of a length that can be kept under a key: what is cut off is replaced by a digest."""
    sound = _BREAKS.sub(" ", name.encode("utf-8", "replace").decode("utf-8")).strip()
    if len(sound) <= _MAX_NAME_LENGTH:
        return sound
    digest = hashlib.sha256(sound.encode()).hexdigest()[:16]
    return f"{sound[: _MAX_NAME_LENGTH - len(digest) - 1]}~{digest}"


def is_generic(application: str) -> bool:
    """Whether anybody's application could be called so."""
    return _GENERIC.fullmatch(application) is not None


def application_name(name: str, user: str | None) -> str:
    """The name of an application that nobody named the job of; a generic one belongs to its user."""
    sound = clean_name(name) or UNNAMED
    return clean_name(f"{user}.{sound}") if user and is_generic(sound) else sound


def session_name(session: Mapping[str, str], key: str) -> str | None:
    """What a session says under one of the keys above, if it says something that can be read."""
    said = clean_name(session.get(key, ""))
    return said if said and said != _HIDDEN else None


def job_name(namespace: str | None, name: str) -> JobName:
    """The job of that name, of the default namespace where there is none."""
    return JobName(namespace=clean_name(namespace) or None if namespace else None, name=clean_name(name) or UNNAMED)


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
