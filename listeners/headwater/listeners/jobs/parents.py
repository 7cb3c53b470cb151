"""Who started this application: the run of an orchestrator, as the configuration or the environment tells it."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from typing import Final

from pydantic import ValidationError

from headwater.events.jobs import ParentRun
from headwater.listeners.settings import Settings

_LOG = logging.getLogger(__name__)
_AIRFLOW: Final = "AIRFLOW_CTX_"
_AIRFLOW_NAMESPACE: Final = "AIRFLOW__OPENLINEAGE__NAMESPACE"
_PARENT: Final = "OPENLINEAGE_PARENT_ID"
_ROOT: Final = "OPENLINEAGE_ROOT_PARENT_ID"
_OPENLINEAGE: Final = "spark.openlineage."
_OPENLINEAGE_NAMESPACE: Final = "OPENLINEAGE_NAMESPACE"
_DEFAULT: Final = "default"
_TRIPLE: Final = re.compile(r"(?P<namespace>.+)/(?P<name>[^/]+)/(?P<run>[0-9a-fA-F-]{36})")
"""A namespace may hold slashes, a name doesn't."""


def parent_run(
    settings: Settings, configuration: Mapping[str, str], environment: Mapping[str, str]
) -> ParentRun | None:
    """What `spark.headwater.parent.*` says; without it what OpenLineage's keys or variables say, which somebody set for
    this job; without them what Airflow sets for each of its tasks. None where nobody says anything that makes sense."""
    ways = (
        lambda: _from_settings(settings),
        lambda: _from_openlineage_keys(configuration),
        lambda: _from_openlineage_variables(environment),
        lambda: _from_airflow(environment),
    )
    return next((found for way in ways if (found := _read_or_warn(way)) is not None), None)


def _read_or_warn(way: Callable[[], ParentRun | None]) -> ParentRun | None:
    try:
        return way()
    except ValidationError as e:  # an environment can hold anything
        _LOG.warning("who started this application can't be value_of: %s", e.errors(include_input=False)[0]["msg"])
        return None


def _from_settings(settings: Settings) -> ParentRun | None:
    if settings.parent_name is None:
        return None
    return ParentRun(
        namespace=settings.parent_namespace or _DEFAULT,
        name=settings.parent_name,
        run=settings.parent_run,
        root_namespace=settings.parent_root_namespace,
        root_name=settings.parent_root_name,
        root_run=settings.parent_root_run,
    )


def _from_openlineage_keys(configuration: Mapping[str, str]) -> ParentRun | None:
    """What OpenLineage's own integration is given, by Airflow say."""

    def value_of(key: str) -> str | None:
        return configuration.get(f"{_OPENLINEAGE}{key}", "").strip() or None

    name = value_of("parentJobName")
    if name is None:
        return None
    return ParentRun(
        namespace=value_of("parentJobNamespace") or _DEFAULT,
        name=name,
        run=value_of("parentRunId"),
        root_namespace=value_of("rootParentJobNamespace"),
        root_name=value_of("rootParentJobName"),
        root_run=value_of("rootParentRunId"),
    )


def _from_openlineage_variables(environment: Mapping[str, str]) -> ParentRun | None:
    parent = _TRIPLE.fullmatch(environment.get(_PARENT, "").strip())
    if parent is None:
        return None
    root = _TRIPLE.fullmatch(environment.get(_ROOT, "").strip())
    return ParentRun(
        namespace=parent["namespace"],
        name=parent["name"],
        run=parent["run"],
        root_namespace=root["namespace"] if root else None,
        root_name=root["name"] if root else None,
        root_run=root["run"] if root else None,
    )


def _from_airflow(environment: Mapping[str, str]) -> ParentRun | None:
    """A task is `<dag>.<task>`, as Airflow itself calls it in OpenLineage; its DAG is the root."""
    dag, task, run = (environment.get(f"{_AIRFLOW}{key}") or None for key in ("DAG_ID", "TASK_ID", "DAG_RUN_ID"))
    if dag is None or task is None:
        return None
    namespace = environment.get(_AIRFLOW_NAMESPACE) or environment.get(_OPENLINEAGE_NAMESPACE) or _DEFAULT
    return ParentRun(
        namespace=namespace, name=f"{dag}.{task}", run=run, root_namespace=namespace, root_name=dag, root_run=run
    )
