"""The types of Atlas's own models that headwater refers to, for a server without them.

Atlas's distribution has them; its war, which tests run, has not. Names, attributes, what is mandatory and relationships
are as Atlas 2.1 defines them; what headwater never touches is left out.
"""

from __future__ import annotations

from typing import Any, Final


def attribute(name: str, type_name: str = "string", *, optional: bool = True, unique: bool = False) -> dict[str, Any]:
    is_set = type_name.startswith("array<")
    return {
        "name": name,
        "typeName": type_name,
        "cardinality": "SET" if is_set else "SINGLE",
        "isIndexable": unique,
        "isOptional": optional,
        "isUnique": unique,
        "valuesMinCount": 0 if optional else 1,
        "valuesMaxCount": 2147483647 if is_set else 1,
    }


def entity(name: str, parents: list[str], *attributes: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "superTypes": parents, "typeVersion": "1.1", "attributeDefs": list(attributes)}


def relationship(
    name: str, category: str, parent: tuple[str, str], child: tuple[str, str], *, child_many: bool = False
) -> dict[str, Any]:
    label = {} if child_many else {"relationshipLabel": f"__{parent[0]}.{parent[1]}"}
    return {
        "name": name,
        "typeVersion": "1.0",
        "relationshipCategory": category,
        **label,
        "propagateTags": "NONE",
        "endDef1": {
            "type": parent[0],
            "name": parent[1],
            "isContainer": True,
            "cardinality": "SET",
            "isLegacyAttribute": True,
        },
        "endDef2": {
            "type": child[0],
            "name": child[1],
            "isContainer": False,
            "cardinality": "SET" if child_many else "SINGLE",
            "isLegacyAttribute": not child_many,
        },
    }


MODELS: Final[dict[str, list[dict[str, Any]]]] = {
    "entityDefs": [
        entity("Referenceable", [], attribute("qualifiedName", optional=False, unique=True)),
        entity(
            "Asset",
            ["Referenceable"],
            attribute("name", optional=False),
            attribute("displayName"),
            attribute("description"),
            attribute("userDescription"),
            attribute("owner"),
        ),
        entity("DataSet", ["Asset"]),
        entity("Infrastructure", ["Asset"]),
        entity("Process", ["Asset"], attribute("inputs", "array<DataSet>"), attribute("outputs", "array<DataSet>")),
        entity("ProcessExecution", ["Asset"]),
        entity("hive_db", ["Asset"], attribute("clusterName", optional=False), attribute("location")),
        entity("hive_table", ["DataSet"], attribute("comment"), attribute("tableType")),
        entity("hive_column", ["DataSet"], attribute("type", optional=False), attribute("comment")),
        entity("fs_path", ["DataSet"], attribute("path", optional=False)),
        entity("hdfs_path", ["fs_path"], attribute("clusterName")),
        entity("kafka_topic", ["DataSet"], attribute("topic", optional=False), attribute("uri", optional=False)),
        entity("rdbms_instance", ["DataSet"], attribute("rdbms_type", optional=False)),
        entity("rdbms_db", ["DataSet"]),
        entity("rdbms_table", ["DataSet"]),
        entity("rdbms_column", ["DataSet"], attribute("data_type")),
    ],
    "relationshipDefs": [
        relationship(
            "dataset_process_inputs",
            "AGGREGATION",
            ("Process", "inputs"),
            ("DataSet", "inputToProcesses"),
            child_many=True,
        ),
        relationship(
            "process_dataset_outputs",
            "AGGREGATION",
            ("Process", "outputs"),
            ("DataSet", "outputFromProcesses"),
            child_many=True,
        ),
        {
            "name": "hive_table_db",
            "typeVersion": "1.2",
            "relationshipCategory": "AGGREGATION",
            "relationshipLabel": "__hive_table.db",
            "propagateTags": "NONE",
            "endDef1": {
                "type": "hive_table",
                "name": "db",
                "isContainer": False,
                "cardinality": "SINGLE",
                "isLegacyAttribute": True,
            },
            "endDef2": {"type": "hive_db", "name": "tables", "isContainer": True, "cardinality": "SET"},
        },
        relationship("hive_table_columns", "COMPOSITION", ("hive_table", "columns"), ("hive_column", "table")),
        relationship(
            "rdbms_instance_databases", "COMPOSITION", ("rdbms_instance", "databases"), ("rdbms_db", "instance")
        ),
        relationship("rdbms_db_tables", "COMPOSITION", ("rdbms_db", "tables"), ("rdbms_table", "db")),
        relationship("rdbms_table_columns", "COMPOSITION", ("rdbms_table", "columns"), ("rdbms_column", "table")),
    ],
}
