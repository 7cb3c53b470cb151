"""The pages docs/sql*.md are run as they stand, by the programs of PostgreSQL and MariaDB, by DuckDB and by SQLite."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy import URL, create_engine, make_url, text

from headwater.lineage.sql import METADATA
from headwater.local import Service
from headwater.local.mariadb import mariadb_installation
from headwater.local.postgres import postgres_programs
from tests.kit.lineage import pip5_story
from tests.kit.lineage.readers import PASSWORD, mariadb_reader, postgres_reader
from tests.kit.lineage.sql_doc import (
    ANSWERS,
    DOC,
    Query,
    block,
    in_duckdb,
    in_sqlite,
    lines_of,
    placed,
    queries,
    rows_in,
    typed,
)
from tests.kit.lineage.views import database_of, fill

pytestmark = [pytest.mark.slow, pytest.mark.database]


@dataclass(frozen=True)
class Places:
    postgres: URL
    mariadb: URL
    files: Path


@pytest.fixture(scope="module")
def places(postgres: Service, mariadb: Service, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Places]:
    own = (("paimon_cata1", "catalog1"), ("paimon_cata2", "catalog2"))
    files = tmp_path_factory.mktemp("files")
    for number, catalog in enumerate(pip5_story.CATALOGS, 1):
        lite = create_engine(f"sqlite:///{files}/store{number}.db")
        METADATA.create_all(lite)
        fill(lite, pip5_story.events(catalog2_keeps_data=True), ("paimon", catalog))
        lite.dispose()
    with (
        database_of(postgres.address, schema="headwater") as pg,
        database_of(mariadb.address) as maria,
        postgres_reader(pg, "headwater"),
        mariadb_reader(maria, *(name for name, _ in own)),
    ):
        fill(pg, pip5_story.events(catalog2_keeps_data=True), ("paimon", None), *own)
        fill(maria, pip5_story.events(catalog2_keeps_data=True), *own)
        with pg.begin() as connection:
            for schema in ("paimon", *(name for name, _ in own), "headwater"):
                connection.execute(text(f"GRANT USAGE ON SCHEMA {schema} TO reader"))
                connection.execute(text(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO reader"))
        yield Places(make_url(postgres.address).set(database=pg.url.database), maria.url, files)
        with maria.begin() as connection:
            for name, _ in own:
                connection.execute(text(f"DROP DATABASE {name}"))


def asked(engine: str, query: Query, places: Places) -> str:
    if engine == "psql":
        return typed(placed(block("sh psql"), places.postgres), query.sql, postgres_programs(), PGPASSWORD=PASSWORD)
    if engine == "mariadb":
        programs = mariadb_installation().server.parent
        return typed(placed(block("sh mariadb"), places.mariadb), query.sql, programs, MYSQL_PWD=PASSWORD)
    return in_duckdb(placed(block("sql begin"), places.postgres) + query.sql, places.files)


@pytest.mark.parametrize("query", [*queries("clients"), *queries("psql")], ids=str)
def test_psql_prints_what_the_documentation_shows(places: Places, query: Query) -> None:
    found = asked("psql", query, places)
    assert rows_in(found) == ANSWERS[query.title]
    assert lines_of(query.printed) == lines_of(found)


@pytest.mark.parametrize("query", queries("clients"), ids=str)
@pytest.mark.parametrize("engine", ["mariadb", "duckdb"])
def test_the_same_query_has_the_same_answer_elsewhere(places: Places, engine: str, query: Query) -> None:
    assert rows_in(asked(engine, query, places)) == ANSWERS[query.title]


@pytest.mark.parametrize("query", queries("clients"), ids=str)
def test_the_same_query_has_the_same_answer_in_sqlite(places: Places, query: Query) -> None:
    attached = "".join(f"ATTACH 'file:store{n}.db?mode=ro' AS paimon_cata{n};\n" for n in (1, 2))
    assert attached.splitlines()[0] in DOC
    sql = (attached if "paimon_cata2" in query.sql else "") + query.sql
    assert in_sqlite(sql, places.files) == ANSWERS[query.title]
    if shutil.which("sqlite3") is not None:
        assert rows_in(typed(f"cd {places.files} && {block('sh sqlite3')}", sql, None)) == ANSWERS[query.title]


@pytest.mark.parametrize("query", queries("duckdb"), ids=str)
def test_duckdb_asks_a_file_of_sqlite_as_the_page_says(places: Places, query: Query) -> None:
    assert rows_in(in_duckdb(query.sql, places.files)) == ANSWERS[query.title]


@pytest.mark.parametrize("query", queries("clients")[:-1], ids=str)
def test_duckdb_takes_each_query_as_a_text_for_sqlite(places: Places, query: Query) -> None:
    quoted = query.sql.strip().removesuffix(";").replace("'", "''")
    attached = "ATTACH 'store1.db' AS catalog1 (TYPE sqlite, READ_ONLY);\n"
    sql = f"{attached}SELECT * FROM sqlite_query('catalog1', '\n{quoted}\n');\n"
    assert rows_in(in_duckdb(sql, places.files)) == ANSWERS[query.title]
    assert [shown for shown in queries("duckdb") if shown.title == query.title and shown.sql != sql] == []


def test_the_pages_have_all_queries_of_the_proposal() -> None:
    seeds = set(list(ANSWERS)[:7])
    assert {query.title for query in queries("spark")} >= seeds
    assert {query.title for query in queries("clients")} == seeds
