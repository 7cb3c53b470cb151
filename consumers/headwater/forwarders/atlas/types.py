"""The types that headwater brings along, for what Atlas has no type of.

They are registered where they are missing. Where an older version of them is registered, what they lack is added: Atlas
takes nothing away from a type, and neither does headwater.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

DATASET: Final = "headwater_dataset"
"""A table, a view, or files, whatever their format."""
COLUMN: Final = "headwater_column"
DATABASE: Final = "headwater_database"
JOB: Final = "headwater_job"
COLUMN_LINEAGE: Final = "headwater_column_lineage"
RUN: Final = "headwater_run"
EXECUTION: Final = "headwater_execution"
"""A commit of a job, or of the micro-batches of a run, or a statement that failed."""

TYPE_VERSION: Final = "1.0"
_SERVICE: Final = "headwater"

Definition = dict[str, Any]


def _attribute(name: str, type_name: str = "string", *, indexed: bool = False) -> Definition:
    is_array = type_name.startswith("array<")
    return {
        "name": name,
        "typeName": type_name,
        "cardinality": "LIST" if is_array else "SINGLE",
        "isIndexable": indexed,
        "isOptional": True,
        "isUnique": False,
        "valuesMinCount": 0,
        "valuesMaxCount": 2147483647 if is_array else 1,
    }


def _entity(name: str, parent: str, description: str, *attributes: Definition) -> Definition:
    return {
        "category": "ENTITY",
        "name": name,
        "superTypes": [parent],
        "serviceType": _SERVICE,
        "typeVersion": TYPE_VERSION,
        "description": description,
        "attributeDefs": list(attributes),
    }


def _relationship(name: str, category: str, parent: tuple[str, str], child: tuple[str, str]) -> Definition:
    """Each is a type and what its end is called there. A composition's child is deleted with its parent."""
    return {
        "category": "RELATIONSHIP",
        "name": name,
        "serviceType": _SERVICE,
        "typeVersion": TYPE_VERSION,
        "description": name,
        "relationshipCategory": category,
        "propagateTags": "NONE",
        "attributeDefs": [],
        "endDef1": {
            "type": parent[0],
            "name": parent[1],
            "isContainer": True,
            "cardinality": "SET",
            "isLegacyAttribute": False,
        },
        "endDef2": {
            "type": child[0],
            "name": child[1],
            "isContainer": False,
            "cardinality": "SINGLE",
            "isLegacyAttribute": False,
        },
    }


_TIME: Final = _attribute("eventTime", "date")
_PARAMETERS: Final = _attribute("parameters", "map<string,string>")
_ENTITIES: Final = (
    _entity(
        DATABASE,
        "Asset",
        "A database of one of Spark's catalogs",
        _attribute("catalog", indexed=True),
        _attribute("location"),
        _PARAMETERS,
        _TIME,
    ),
    _entity(
        DATASET,
        "DataSet",
        "A table, a view, or files, as Spark reads and writes them",
        _attribute("kind", indexed=True),
        _attribute("format", indexed=True),
        _attribute("catalog", indexed=True),
        _attribute("location"),
        _attribute("generation"),
        _attribute("partitioning", "array<string>"),
        _attribute("primaryKey", "array<string>"),
        _attribute("query"),
        _PARAMETERS,
        _TIME,
    ),
    _entity(
        COLUMN,
        "DataSet",
        "A column of a dataset",
        _attribute("type", indexed=True),
        _attribute("position", "int"),
        _attribute("nullable", "boolean"),
        _attribute("defaultValue"),
        _attribute("generatedBy"),
        _TIME,
    ),
    _entity(
        JOB,
        "Process",
        "A job of Spark, a step of one, or the query of a view",
        _attribute("jobType", indexed=True),
        _attribute("query"),
        _PARAMETERS,
        _TIME,
    ),
    _entity(
        COLUMN_LINEAGE,
        "Process",
        "The columns that a job makes a column from",
        _attribute("derivations", "array<string>"),
        _TIME,
    ),
    _entity(
        RUN,
        "ProcessExecution",
        "A run of a job",
        _attribute("runId", indexed=True),
        _attribute("application", indexed=True),
        _attribute("status", indexed=True),
        _attribute("isStatusInferred", "boolean"),
        _attribute("startTime", "date"),
        _attribute("endTime", "date"),
        _attribute("parentRun"),
        _attribute("startedBy"),
        _PARAMETERS,
    ),
    _entity(
        EXECUTION,
        "ProcessExecution",
        "A commit of a job with the versions that it read and made, or a statement that failed",
        _attribute("status", indexed=True),
        _attribute("runId", indexed=True),
        _attribute("barrier"),
        _attribute("batchId", "long"),
        _attribute("read", "map<string,string>"),
        _attribute("made", "map<string,string>"),
        _attribute("opaque", "int"),
        _attribute("errorType"),
        _attribute("errorMessage"),
        _TIME,
    ),
)
_RELATIONSHIPS: Final = (
    _relationship("headwater_database_datasets", "AGGREGATION", (DATABASE, "datasets"), (DATASET, "database")),
    _relationship("headwater_dataset_columns", "COMPOSITION", (DATASET, "columns"), (COLUMN, "dataset")),
    _relationship("headwater_job_steps", "AGGREGATION", (JOB, "steps"), (JOB, "parent")),
    _relationship("headwater_job_column_lineages", "COMPOSITION", (JOB, "columnLineages"), (COLUMN_LINEAGE, "job")),
    _relationship("headwater_job_runs", "AGGREGATION", (JOB, "runs"), (RUN, "job")),
    _relationship("headwater_job_executions", "AGGREGATION", (JOB, "executions"), (EXECUTION, "job")),
)
DEFINITIONS: Final[Mapping[str, tuple[Definition, ...]]] = {
    "entityDefs": _ENTITIES,
    "relationshipDefs": _RELATIONSHIPS,
}
REQUIRED: Final[Mapping[str, tuple[str, ...]]] = {
    COLUMN: ("dataset",),
    COLUMN_LINEAGE: ("job", "inputs", "outputs"),
    "hive_table": ("db",),
    "hive_column": ("table",),
    "rdbms_db": ("instance",),
    "rdbms_table": ("db",),
    "rdbms_column": ("table",),
}
"""References without which an entity of a type can't be, or says nothing."""
MULTIPLE: Final = frozenset({"inputs", "outputs", "columns", "columnLineages"})
"""References that lead to several entities."""


def definitions() -> Iterator[tuple[str, Definition]]:
    """Yield all definitions, each with the list of the request that it belongs to."""
    for which, each in DEFINITIONS.items():
        for definition in each:
            yield which, definition


def missing_definitions(found: Mapping[str, Definition]) -> dict[str, list[Definition]]:
    """Return the request that registers the types that aren't among those found; empty lists if all are."""
    missing: dict[str, list[Definition]] = {which: [] for which in DEFINITIONS}
    for which, definition in definitions():
        if definition["name"] not in found:
            missing[which].append(definition)
    return missing


def added_attributes(found: Mapping[str, Definition]) -> list[Definition]:
    """Return the definitions of registered types that lack attributes of ours, with those added.

    What a newer headwater, or somebody else, has added to a type stays in it.
    """
    grown: list[Definition] = []
    for definition in _ENTITIES:
        registered = found.get(definition["name"])
        if registered is None:
            continue
        names = {each["name"] for each in registered["attributeDefs"]}
        lacking = [each for each in definition["attributeDefs"] if each["name"] not in names]
        if lacking:
            grown.append({**registered, "attributeDefs": [*registered["attributeDefs"], *lacking]})
    return grown
