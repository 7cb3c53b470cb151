"""The contract suite on the stores that are here: in memory, and in real databases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine

from headwater.lineage.api import LineageMeta
from headwater.lineage.meta import DatabaseLineageMeta, MemoryLineageMeta, ThreadedLineageMeta, open_lineage_meta
from headwater.lineage.meta.factories import AsyncLineageMeta
from headwater.lineage.sql import METADATA
from headwater.lineage.store import open_store
from headwater.local import Service
from headwater.testing.stores import AsyncLineageMetaContract, LineageMetaContract
from tests.kit.stores import own_database

pytestmark = [pytest.mark.sample(30)]


@pytest.fixture(scope="module")
def emptied(postgres: Service) -> Iterator[str]:
    """A database for many tests, each of which empties it."""
    with own_database(postgres) as url:
        yield url


class TestMemory(LineageMetaContract):
    @pytest.fixture(autouse=True)
    def _store(self) -> None:
        self.store = MemoryLineageMeta()

    def create(self) -> LineageMeta:
        return self.store


class _InDatabase(LineageMetaContract):
    engine: Engine

    @pytest.fixture(autouse=True)
    def _tables(self, url: str) -> Iterator[None]:
        self.engine = create_engine(url)
        METADATA.create_all(self.engine)
        yield
        METADATA.drop_all(self.engine)
        self.engine.dispose()

    def create(self) -> LineageMeta:
        return DatabaseLineageMeta(self.engine)


class TestMemoryInALoop(AsyncLineageMetaContract):
    @pytest.fixture(autouse=True)
    def _store(self) -> None:
        self.store = MemoryLineageMeta()

    def create_async(self) -> AsyncLineageMeta:
        return ThreadedLineageMeta(self.store)


class _InOpenedDatabase(AsyncLineageMetaContract):
    """As a catalog's options open it, in an event loop. One database serves them all, emptied for each."""

    store: LineageMeta

    @pytest.fixture(autouse=True)
    def _opened(self, url: str) -> Iterator[None]:
        self.store = open_lineage_meta({"jdbc.url": url, "warehouse": "file:/w"})
        with open_store(url) as store, store.engine.begin() as connection:
            for each in METADATA.tables.values():
                connection.execute(each.delete())
        yield
        self.store.close()

    def create_async(self) -> AsyncLineageMeta:
        return ThreadedLineageMeta(self.store)


@pytest.mark.slow
class TestSQLiteInALoop(_InOpenedDatabase):
    @pytest.fixture
    def url(self, tmp_path: Path) -> str:
        return f"{tmp_path}/store.db"


@pytest.mark.slow
@pytest.mark.database
class TestPostgreSQLInALoop(_InOpenedDatabase):
    @pytest.fixture
    def url(self, emptied: str) -> str:
        return emptied


@pytest.mark.slow
class TestSQLite(_InDatabase):
    @pytest.fixture
    def url(self, tmp_path: Path) -> str:
        return f"sqlite:///{tmp_path}/store.db"


@pytest.mark.slow
@pytest.mark.database
class TestPostgreSQL(_InDatabase):
    @pytest.fixture
    def url(self, postgres: Service) -> str:
        return postgres.address


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.database
class TestMariaDB(_InDatabase):
    @pytest.fixture
    def url(self, mariadb: Service) -> str:
        return mariadb.address
