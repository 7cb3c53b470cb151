"""DataHub's URNs."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote

from headwater.events.identity.errors import IdentityError
from headwater.events.identity.external.plain import DATABASES, plain_name, scheme_of
from headwater.events.identity.filesystems import family
from headwater.events.identity.paths import location_of
from headwater.events.identity.text import required
from headwater.events.names import DatasetId

_RESERVED = re.compile("[,()\u241f]")
_ENV = re.compile(r"[A-Z][A-Z_]*")
_PLATFORMS: Final = {"s3": "s3", "gs": "gcs", "abfss": "abs", "wasbs": "abs", "dbfs": "dbfs", "file": "file"}
_NAMED: Final = {**{name: name for name in DATABASES}, "kafka": "kafka", "hive": "hive", "unitycatalog": "databricks"}


def dataset_urn(
    dataset: DatasetId,
    *,
    platform_instance: str | None = None,
    env: str = "PROD",
    lowercase: bool = False,
    include_scheme: bool = True,
) -> str:
    """The URN under which DataHub's own ingestion and its Spark agent know a dataset.

    `platform_instance` tells clusters of one platform apart, since a URN has no host. `include_scheme` concerns HDFS
    and its like, where the agent keeps the scheme by default and ingestion doesn't.
    """
    platform, name = _platform_and_name(dataset, include_scheme=include_scheme)
    return table_urn(platform, name, platform_instance=platform_instance, env=env, lowercase=lowercase)


def table_urn(
    platform: str, name: str, *, platform_instance: str | None = None, env: str = "PROD", lowercase: bool = False
) -> str:
    """Of a table by its name in a platform: `iceberg` and `db.table`, `hive` and `db.table`."""
    if not _ENV.fullmatch(env):
        msg = f"DataHub environment {env!r} isn't one of PROD, DEV, TEST, …; write it in capitals"
        raise IdentityError(msg)
    folds = lowercase or platform == "snowflake"
    full = name.lower() if folds else name
    full = f"{platform_instance}.{full}" if platform_instance else full
    return f"urn:li:dataset:({platform_urn(platform)},{encoded(full)},{env})"


def platform_urn(platform: str) -> str:
    return f"urn:li:dataPlatform:{encoded(required(platform, 'the DataHub platform'))}"


def platform_instance_urn(platform: str, instance: str) -> str:
    return f"urn:li:dataPlatformInstance:({platform_urn(platform)},{encoded(instance)})"


def data_flow_urn(flow: str, cluster: str = "PROD", orchestrator: str = "spark") -> str:
    return f"urn:li:dataFlow:({encoded(orchestrator)},{encoded(flow)},{encoded(cluster)})"


def data_job_urn(flow_urn: str, job: str) -> str:
    return f"urn:li:dataJob:({flow_urn},{encoded(job)})"


def process_instance_urn(run: str) -> str:
    return f"urn:li:dataProcessInstance:{encoded(run)}"


def schema_field_urn(dataset_urn: str, field_path: str) -> str:
    return f"urn:li:schemaField:({dataset_urn},{encoded(field_path)})"


def snapshot_property(snapshot: int) -> str:
    """Custom properties are texts."""
    return str(snapshot)


def encoded(text: str) -> str:
    """Reserved characters percent-encoded; `%` itself stays, as in DataHub's own encoder."""
    return _RESERVED.sub(lambda match: quote(match[0], safe=""), required(text, "a part of a DataHub URN"))


def _platform_and_name(dataset: DatasetId, *, include_scheme: bool) -> tuple[str, str]:
    scheme = scheme_of(dataset)
    if dataset.namespace.startswith("arn:aws:glue:"):
        return "glue", dataset.name.removeprefix("table/").replace("/", ".")
    if scheme in _NAMED:
        return _NAMED[scheme], plain_name(dataset)
    location = location_of(dataset)
    bare = location.partition("://")[2].rstrip("/")
    if scheme in _PLATFORMS:
        return _PLATFORMS[scheme], bare
    if not family(scheme).rooted:
        return scheme, bare
    return "hdfs", location if include_scheme else bare
