"""The pages docs/sql*.md as they are run: its blocks, the programs that it names, and what they print."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from sqlalchemy import URL

from tests.kit.lineage import pip5_story

ROOT: Final = Path(__file__).parents[3]
DOC: Final = "\n".join(page.read_text("utf-8") for page in sorted((ROOT / "docs").glob("sql*.md")))
_QUERY: Final = re.compile(
    r"^```sql (\w+)\n(-- [^\n]*)\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL
)
_RULE: Final = re.compile(r"[-+─┬┴┼├┤┌┐└┘\s]*|\(?\d+ rows?\)?")
D = pip5_story.D
ANSWERS: Final[dict[str, set[tuple[str, ...]]]] = {
    "Select the options for the current catalog": {
        ("table-lineage", "true"),
        ("data-lineage", "true"),
        ("lineage-meta", "jdbc"),
    },
    "Query upstream tables for given table": {(D, "orders"), (D, "customers")},
    "Query downstream tables for given table": {(D, "daily")},
    "Query upstream table snapshot for given table and snapshot": {(D, "orders", "41"), (D, "customers", "17")},
    "Query downstream table snapshot for given table and snapshot": {(D, "daily", "9")},
    "Where the newest run of each job began": {("report", D, "myTable", "123")},
    "Lineage across two catalogs": {("4",)},
    "The exact edges of a snapshot": {
        ("catalog1", D, "customers", "17", "ALL"),
        ("catalog1", D, "orders", "41", "ALL"),
    },
    "Everything that is in a table at a snapshot": {(D, "customers", "17", "17"), (D, "orders", "41", "43")},
}
"""By hand, out of the history's own words."""


@dataclass(frozen=True)
class Query:
    engine: str
    title: str
    sql: str
    printed: str
    """Empty where the page shows no answer."""

    def __str__(self) -> str:
        return f"{self.engine}: {self.title}"


def queries(*engines: str) -> list[Query]:
    found = (Query(engine, title[3:], sql, text) for engine, title, sql, text in _QUERY.findall(DOC))
    return [query for query in found if query.engine in engines]


def block(language: str) -> str:
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", DOC, re.MULTILINE | re.DOTALL)
    return str(found)


def rows_in(printed: str) -> set[tuple[str, ...]]:
    """Without the header, the frame, and DuckDB's types."""
    lines = [line.replace("│", "|") for line in printed.splitlines() if not _RULE.fullmatch(line)]
    rows = [tuple(cell.strip() for cell in line.strip().strip("|").split("|")) for line in lines]
    return {row for row in rows[1:] if not all(cell in {"varchar", "int64", "timestamp"} for cell in row)}


def lines_of(printed: str) -> list[str]:
    """Rows come in any order."""
    return sorted(line.rstrip() for line in printed.splitlines() if line.strip())


def placed(text: str, url: URL) -> str:
    """The documentation's example of a server, as the one that is here."""
    port = str(url.port)
    for written, real in (
        ("//reader@db.example:5432/lineage", f"//reader@127.0.0.1:{port}/{url.database}"),
        ("//db.example:5432/lineage", f"//127.0.0.1:{port}/{url.database}"),
        ("host=db.example port=5432 dbname=lineage", f"host=127.0.0.1 port={port} dbname={url.database}"),
        ("--host db.example --port 3306", f"--host 127.0.0.1 --port {port}"),
    ):
        text = text.replace(written, real)
    return text


def typed(command: str, sql: str, programs: Path | None, **environment: str) -> str:
    """What a program prints that is given this to read."""
    path = os.environ["PATH"] if programs is None else f"{programs}{os.pathsep}{os.environ['PATH']}"
    given: Mapping[str, str] = {**os.environ, "PATH": path, **environment}
    done = subprocess.run(command, shell=True, input=sql, env=given, capture_output=True, text=True, check=False)  # noqa: S602
    assert done.returncode == 0, done.stderr
    return done.stdout


def in_sqlite(sql: str, directory: Path) -> set[tuple[str, ...]]:
    """What SQLite answers in the files' first store, by the library of Python: for machines without its program."""
    *before, query = sql.replace("'file:store", f"'file:{directory}/store").rstrip().removesuffix(";").split(";\n")
    with closing(sqlite3.connect(f"file:{directory}/store1.db?mode=ro", uri=True)) as connection:
        for statement in before:
            connection.execute(statement)
        return {tuple(map(str, row)) for row in connection.execute(query)}


def duckdb_extension(name: str) -> Path:
    spec = find_spec(f"duckdb_extension_{name}_scanner")
    assert spec is not None
    assert spec.submodule_search_locations
    (found,) = Path(spec.submodule_search_locations[0]).rglob("*.duckdb_extension")
    return found


def in_duckdb(sql: str, directory: Path) -> str:
    import duckdb

    connection: Any = duckdb.connect()
    for name in ("sqlite", "postgres"):
        connection.execute(f"LOAD '{duckdb_extension(name)}'")
    *before, query = [each.strip() for each in sql.replace("'store", f"'{directory}/store").split(";") if each.strip()]
    for statement in before:
        connection.execute(statement)
    printed = str(connection.sql(query))
    connection.close()
    return printed
