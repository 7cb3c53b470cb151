"""What the files of Iceberg, Delta and Paimon say of a table, read without Spark and without headwater."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from tests.kit.formats.iceberg_truth import metadata_at
from tests.kit.whole.shop import Kept


def iceberg(table: Path) -> list[int]:
    return metadata_at(table).ids


def delta(table: Path) -> list[int]:
    """Versions that added data: those of CREATE TABLE and ALTER TABLE have none."""
    return [version for version, actions in _log(table) if any("add" in action for action in actions)]


def paimon(table: Path) -> list[int]:
    files = (table / "snapshot").glob("snapshot-*")
    return sorted(int(file.name.removeprefix("snapshot-")) for file in files)


def iceberg_columns(table: Path) -> list[list[str]]:
    """Of each schema, in their order."""
    schemas = sorted(metadata_at(table).content["schemas"], key=lambda each: int(each["schema-id"]))
    return [[field["name"] for field in each["fields"]] for each in schemas]


def delta_columns(table: Path) -> list[list[str]]:
    emitted = [
        action["metaData"]["schemaString"] for _, actions in _log(table) for action in actions if "metaData" in action
    ]
    return [[field["name"] for field in json.loads(each)["fields"]] for each in emitted]


def paimon_columns(table: Path) -> list[list[str]]:
    files = sorted((table / "schema").glob("schema-*"), key=lambda file: int(file.name.removeprefix("schema-")))
    return [[field["name"] for field in json.loads(file.read_text())["fields"]] for file in files]


def _log(table: Path) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    for file in sorted((table / "_delta_log").glob("*.json")):
        yield int(file.stem), [json.loads(line) for line in file.read_text().splitlines()]


VERSIONS: Final[dict[str, Callable[[Path], list[int]]]] = {"iceberg": iceberg, "delta": delta, "paimon": paimon}
SCHEMAS: Final = {"iceberg": iceberg_columns, "delta": delta_columns, "paimon": paimon_columns}


def kept(provider: str, database: Path) -> Kept:
    read = VERSIONS[provider]
    return Kept(**{name: read(database / name) for name in ("orders", "products", "details", "revenue", "top")})
