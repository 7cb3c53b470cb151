"""How databases find what questions ask for: by indexes. A plan that reads a growing table from end to end is a fault
that no answer shows, and no measurement on a small store.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from sqlalchemy import Connection, Engine, create_engine, event, text

from headwater.events.clock import moment_of
from headwater.events.names import JobName
from headwater.lineage.questions.columns import downstream_columns, upstream_columns
from headwater.lineage.questions.completeness import complete_until, gaps
from headwater.lineage.questions.generations import aliases, generations
from headwater.lineage.questions.history import schema_changes
from headwater.lineage.questions.jobs import jobs_of, tables_of
from headwater.lineage.questions.names import find
from headwater.lineage.questions.paths import path_between
from headwater.lineage.questions.runs import runs
from headwater.lineage.questions.states import upstream_state
from headwater.lineage.questions.tables import upstream_tables
from headwater.lineage.questions.uses import uses
from headwater.lineage.sql import METADATA
from headwater.local import Service
from headwater.versions import check
from tests.kit.lineage.graph import BEGAN, put_mysql, put_postgres, put_sqlite
from tests.kit.lineage.shapes import FEED, HUB, LATE, LONG, PONG, Statements, questions, rows, table

SHARE: Final = 0.02
GROWING: Final = frozenset(
    {
        *("reads", "writes", "commits", "commit_edges", "places"),
        *(
            "datasets",
            "aliases",
            "generations",
            "modifications",
            "runs",
            "table_lineage",
            "table_edges",
            "job_lineage",
            "job_lineage_tables",
            "job_lineage_columns",
        ),
        *("arrivals", "producers", "gaps", "failed_statements"),
    }
)
"""Tables that have a row for each table, commit, run or event."""
OF_THE_STORE: Final = {"gaps"}
"""Questions about no table, which look at all that could be missing."""
Ask = Callable[[Connection], Any]


def asked() -> dict[str, Ask]:
    now = moment_of(BEGAN) + timedelta(days=30)
    shapes: dict[str, Ask] = {each.name: each.ask for each in questions(SHARE)}
    return shapes | {
        "tables upstream": lambda c: upstream_tables(c, table(LONG)),
        "state": lambda c: upstream_state(c, table(LONG)),
        "columns upstream": lambda c: upstream_columns(c, table(LONG), "a"),
        "columns downstream": lambda c: downstream_columns(c, table(FEED), "a"),
        "uses": lambda c: uses(c, table(HUB), now=now),
        "jobs of a table": lambda c: jobs_of(c, table(HUB), now=now),
        "tables of a job": lambda c: tables_of(c, JobName(name=f"job{LATE}"), now=now),
        "runs of a job": lambda c: runs(c, job=JobName(name=f"job{LATE}"), now=now),
        "names of a table": lambda c: (aliases(c, table(LONG), now=now), generations(c, table(LONG), now=now)),
        "schema": lambda c: schema_changes(c, table(LONG), 1, 2, now=now),
        "by name": lambda c: (find(c, f"lake.db.t{LONG}"), find(c, f"s3://lake/warehouse/db/t{LONG}")),
        "a path of snapshots": lambda c: path_between(c, table(FEED), table(PONG)),
        "gaps of a table": lambda c: gaps(c, datasets=[table(LONG).key], now=now),
        "versions": lambda c: check(c, [f"lake.db.t{each}" for each in (LONG, LATE, PONG)]),
        "complete until": lambda c: complete_until(c, now),
    }


@contextmanager
def statements_of(engine: Engine) -> Iterator[list[tuple[str, Any]]]:
    """Collect what is executed, with its parameters."""
    found: list[tuple[str, Any]] = []

    def keep(_: Any, __: Any, statement: str, parameters: Any, *___: Any) -> None:
        found.append((statement, parameters))

    event.listen(engine, "before_cursor_execute", keep)
    try:
        yield found
    finally:
        event.remove(engine, "before_cursor_execute", keep)


def scans(engine: Engine, plans_of: Callable[[Connection, str, Any], set[str]]) -> dict[str, set[str]]:
    """The growing tables that each question has scanned."""
    found: dict[str, set[str]] = {}
    for name, ask in asked().items():
        with engine.connect() as connection:
            with statements_of(engine) as executed:
                ask(connection)
            kinds = dict(executed)
            tables = {
                each for statement, parameters in kinds.items() for each in plans_of(connection, statement, parameters)
            }
        if tables & GROWING and name not in OF_THE_STORE:
            found[name] = tables & GROWING
    return found


def sqlite_scans(connection: Connection, statement: str, parameters: Any) -> set[str]:
    """What `SCAN name` stands for; a scan with LIMIT reads as many rows as are asked for."""
    plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters).all()
    aliases = {name: each.group(1) for each in _ALIAS.finditer(statement) for name in each.groups()}
    if statement.rstrip().endswith("LIMIT ? OFFSET ?") and not any("TEMP B-TREE" in row[3] for row in plan):
        plan = [row for row in plan if " USING " not in row[3]]
    names = {each.group(1) for row in plan if (each := _SCAN.match(row[3]))}
    return {aliases.get(name, name) for name in names}


_SCAN: Final = re.compile(r"SCAN (\w+)")
_ALIAS: Final = re.compile(r"(?:FROM|JOIN|,) (\w+) AS (\w+)")


def postgres_scans(connection: Connection, statement: str, parameters: Any) -> set[str]:
    plan = connection.exec_driver_sql(f"EXPLAIN (FORMAT JSON) {statement}", parameters).scalar_one()
    return {each.removesuffix("_rest") for each in _read_whole(plan[0]["Plan"])}


def _read_whole(node: dict[str, Any]) -> Iterator[str]:
    """Tables, and indexes of those that have many rows here. With LIMIT as much is read as is asked for."""
    name, kind = node.get("Relation Name", ""), node["Node Type"]
    has_condition = "Index Cond" in node or "Recheck Cond" in node
    if kind == "Seq Scan" or (name.removesuffix("_rest") in {"reads", "writes", "commits"} and not has_condition):
        yield name
    for each in node.get("Plans", ()):
        if kind != "Limit":
            yield from _read_whole(each)


def mariadb_scans(connection: Connection, statement: str, parameters: Any) -> set[str]:
    """With LIMIT an index is read as far as is asked for."""
    plan = connection.exec_driver_sql(f"EXPLAIN {statement}", parameters).mappings().all()
    aliases = {name: each.group(1) for each in _ALIAS.finditer(statement) for name in each.groups()}
    whole = [each for each in plan if each["type"] == "ALL" or (each["type"] == "index" and int(each["rows"]) > 1)]
    return {aliases.get(each["table"], each["table"]) for each in whole if each["table"]}


@pytest.mark.slow
def test_sqlite(tmp_path: Path) -> None:
    """Without statistics, as a store is that nobody maintains: of some hundred rows they would speak for a scan."""
    address = f"sqlite:///{tmp_path / 'lineage.db'}"
    filled = create_engine(address)
    METADATA.create_all(filled)
    put_sqlite(filled, rows(SHARE))
    with filled.begin() as connection:
        connection.execute(text("DROP TABLE sqlite_stat1"))
    filled.dispose()
    engine = create_engine(address)  # which reads statistics when it opens a file
    assert scans(engine, sqlite_scans) == {}
    engine.dispose()


@pytest.fixture(scope="module")
def on_postgres(postgres: Service) -> Iterator[Engine]:
    engine = create_engine(postgres.address)
    METADATA.create_all(engine)
    put_postgres(engine, rows(SHARE))
    yield engine
    METADATA.drop_all(engine)
    engine.dispose()


@pytest.mark.database
def test_postgresql(on_postgres: Engine) -> None:
    """What a planner chooses is up to its statistics; whether it has a choice is up to us."""
    with_choice = create_engine(on_postgres.url, connect_args={"options": "-c enable_seqscan=off"})
    try:
        assert scans(with_choice, postgres_scans) == {}
    finally:
        with_choice.dispose()


@pytest.mark.database
def test_levels_of_a_long_chain_are_read_ahead(on_postgres: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """In four statements for 4, 8, 16 and 32 levels, and the answer is that of two statements a level."""
    statements = Statements(on_postgres)
    (ask,) = (each.ask for each in questions(SHARE) if each.name == "two tables: 50 hops")
    try:
        with on_postgres.connect() as connection:
            ahead = ask(connection)
            few = statements.count
            monkeypatch.setattr("headwater.lineage.questions.traversal.read_ahead._DIALECTS", ())
            assert ask(connection) == ahead
    finally:
        event.remove(on_postgres, "before_cursor_execute", statements.add)
    assert len(ahead) == 50
    assert few < 35
    assert statements.count - few > 100


@pytest.mark.long
@pytest.mark.database
def test_mariadb(mariadb: Service) -> None:
    """It would scan tables of some hundred rows, if scans weren't made expensive."""
    engine = create_engine(mariadb.address)
    METADATA.create_all(engine)
    put_mysql(engine, rows(SHARE))
    with_choice = create_engine(
        mariadb.address, connect_args={"init_command": "SET SESSION optimizer_scan_setup_cost = 10000000"}
    )
    try:
        assert scans(with_choice, mariadb_scans) == {}
    finally:
        with_choice.dispose()
        METADATA.drop_all(engine)
        engine.dispose()
