"""The facets of headwater's own: what OpenLineage has no facet for. docs/openlineage-facets.json is their schema.

64-bit numbers are texts, because readers of JSON round large numbers.
"""

from __future__ import annotations

from typing import Final

import attr
from openlineage.client.generated.base import DatasetFacet, InputDatasetFacet, OutputDatasetFacet, RunFacet

SCHEMA_URI: Final = "urn:headwater:openlineage:facets:1-0-0"
"""The `$id` of the schema."""
_KINDS: Final = ("RunFacet", "InputDatasetFacet", "OutputDatasetFacet", "DatasetFacet")
"""The longer ones first."""


def _schema_of(name: str) -> str:
    """Return the schema's address by the kind of facet: OpenLineage's own validator takes a facet that it doesn't know
    for a custom one where `$defs/RunFacet` is in it, or another kind's name."""
    kind = next(each for each in _KINDS if name.endswith(each))
    return f"{SCHEMA_URI}#/$defs/{kind}/$defs/{name}"


@attr.define(kw_only=True)
class HeadwaterStartRunFacet(RunFacet):
    """What a run is one execution of, and where it starts to read."""

    application: str | None = None
    scope: str
    user: str | None = None
    codeVersion: str | None = None  # noqa: N815 - as it stands in JSON
    parent: dict[str, str] | None = None
    """The run of another system that started this one, where its id is no UUID and so no run id of OpenLineage."""
    stream: dict[str, str] | None = None
    startsAt: list[dict[str, str]] | None = None  # noqa: N815

    @staticmethod
    def _get_schema() -> str:
        return _schema_of("HeadwaterStartRunFacet")


@attr.define(kw_only=True)
class HeadwaterStatusRunFacet(RunFacet):
    """How a run ended, or what is known of an error."""

    status: str | None = None
    inferred: bool | None = None
    exitCode: int | None = None  # noqa: N815
    signal: int | None = None
    errorType: str | None = None  # noqa: N815
    condition: str | None = None
    sqlState: str | None = None  # noqa: N815
    parameters: dict[str, str] | None = None
    """What Spark filled into the error's message."""

    @staticmethod
    def _get_schema() -> str:
        return _schema_of("HeadwaterStatusRunFacet")


@attr.define(kw_only=True)
class HeadwaterStatementRunFacet(RunFacet):
    """Which statement or micro-batch committed or failed, and what it read and wrote that has no name."""

    event: str
    application: str | None = None
    statement: str | None = None
    user: str | None = None
    operation: str | None = None
    barrier: str | None = None
    incarnation: str | None = None
    batchId: str | None = None  # noqa: N815
    fingerprint: str | None = None
    unnamedInputs: list[dict[str, str]] | None = None  # noqa: N815
    unnamedOutputs: list[dict[str, str]] | None = None  # noqa: N815

    @staticmethod
    def _get_schema() -> str:
        return _schema_of("HeadwaterStatementRunFacet")


@attr.define(kw_only=True)
class HeadwaterGapRunFacet(RunFacet):
    """What may be missing of the run, and why."""

    event: str
    reason: str
    detail: str | None = None
    missed: str | None = None
    firstTime: str | None = None  # noqa: N815
    lastTime: str | None = None  # noqa: N815
    firstBarrier: str | None = None  # noqa: N815
    lastBarrier: str | None = None  # noqa: N815
    dataset: dict[str, str] | None = None

    @staticmethod
    def _get_schema() -> str:
        return _schema_of("HeadwaterGapRunFacet")


@attr.define(kw_only=True)
class HeadwaterTableDatasetFacet(DatasetFacet):
    """What a dataset is as a table: the name it was used by, its generation, format and layout."""

    event: str | None = None
    table: str | None = None
    generation: str | None = None
    format: str | None = None
    partitionedBy: list[str] | None = None  # noqa: N815
    primaryKey: list[str] | None = None  # noqa: N815
    viewSql: str | None = None  # noqa: N815
    truncatedPartitions: list[dict[str, str]] | None = None  # noqa: N815

    @staticmethod
    def _get_schema() -> str:
        return _schema_of("HeadwaterTableDatasetFacet")


@attr.define(kw_only=True)
class HeadwaterReadsInputDatasetFacet(InputDatasetFacet):
    """Each read of the dataset: a statement can read two versions of one table."""

    reads: list[dict[str, object]]

    @staticmethod
    def _get_schema() -> str:
        return _schema_of("HeadwaterReadsInputDatasetFacet")


@attr.define(kw_only=True)
class HeadwaterWritesOutputDatasetFacet(OutputDatasetFacet):
    """Each version that was made of the dataset: a write that also compacts makes two."""

    writes: list[dict[str, object]]

    @staticmethod
    def _get_schema() -> str:
        return _schema_of("HeadwaterWritesOutputDatasetFacet")
