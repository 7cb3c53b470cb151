"""Versions of tables as a FROM clause that Spark SQL understands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from headwater.errors import ConfigurationError

if TYPE_CHECKING:
    from headwater.versions import TableAt

_TRAVEL: Final = {"HUDI": "TIMESTAMP AS OF '{}'"}
"""Hudi's instants are times."""


def from_clause(tables: Sequence[TableAt]) -> str:
    """Return a FROM clause. A ConfigurationError for a table that SQL has no version of."""
    last = Counter(_last(_parts(table)).casefold() for table in tables)
    lines = []
    for table in tables:
        parts = _parts(table)
        name = _last(parts)
        alias = name if last[name.casefold()] == 1 else "_".join(parts)
        at = _TRAVEL.get(table.format or "", "VERSION AS OF {}").format(table.snapshot)
        lines.append(f"{'.'.join(map(_quote, parts))} {at} AS {_quote(alias)}")
    return "FROM " + ",\n     ".join(lines) + "\n"


def _parts(table: TableAt) -> Sequence[str]:
    label = table.dataset.label
    if table.snapshot is None:
        raise ConfigurationError(f"{label} is known by a position, not by the number of a snapshot: SQL can't name it")
    if "/" in label:
        if table.format is None:
            raise ConfigurationError(f"{label} is known by its path alone, and its format isn't known: use -o json")
        return [table.format.lower(), label]
    *levels, name = label.split(".")
    if table.branch is not None and table.format == "PAIMON":  # the numbers of Iceberg's snapshots tell the branch
        name = f"{name}$branch_{table.branch}"
    return [*levels, name]


def _last(parts: Sequence[str]) -> str:
    return parts[-1].rstrip("/").rpartition("/")[2]


def _quote(name: str) -> str:
    return name if name.isidentifier() and name.isascii() else "`" + name.replace("`", "``") + "`"
