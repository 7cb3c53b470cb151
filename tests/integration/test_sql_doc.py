"""The pages docs/sql*.md are run as they stand: by the programs of PostgreSQL, MariaDB and SQLite, and by DuckDB."""

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


def printed(query: Query, places: Places) -> str:
    if query.engine == "psql":
        return typed(placed(block("sh psql"), places.postgres), query.sql, postgres_programs(), PGPASSWORD=PASSWORD)
    if query.engine == "mariadb":
        programs = mariadb_installation().server.parent
        return typed(placed(block("sh mariadb"), places.mariadb), query.sql, programs, MYSQL_PWD=PASSWORD)
    if query.engine == "sqlite3":
        return in_sqlite(query.sql, places.files)
    return in_duckdb(placed(query.sql, places.postgres), places.files)


@pytest.mark.parametrize("query", queries("psql", "mariadb", "sqlite3", "duckdb"), ids=str)
def test_a_query_of_the_documentation_prints_what_stands_there(places: Places, query: Query) -> None:
    found = [printed(query, places)]
    if query.engine == "sqlite3" and shutil.which("sqlite3") is not None:
        found.append(typed(f"cd {places.files} && {block('sh sqlite3')}", query.sql, None))
    for each in found:
        assert rows_in(each) == ANSWERS[query.title]
        assert lines_of(query.printed) == lines_of(each)


def test_every_engine_is_asked_everything() -> None:
    seeds = set(list(ANSWERS)[:7])
    for engine in ("spark", "psql", "mariadb", "sqlite3", "duckdb"):
        assert {query.title for query in queries(engine)} >= seeds
