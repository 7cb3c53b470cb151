"""Stories that are run on SQLite in tests/unit/lineage are the same on PostgreSQL and MariaDB."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, Engine, create_engine

from headwater.lineage.sql import METADATA
from headwater.local import Service
from tests.unit.lineage.test_gaps import TestGaps
from tests.unit.lineage.test_life_cycle import TestDeleting, TestExpiry, TestPolicies, TestPurging
from tests.unit.lineage.test_life_questions import (
    TestHistory,
    TestJobsAndTables,
    TestLate,
    TestNamesAndGenerations,
    TestRuns,
    TestUses,
)

__all__ = [
    "TestDeleting",
    "TestExpiry",
    "TestGaps",
    "TestHistory",
    "TestJobsAndTables",
    "TestLate",
    "TestNamesAndGenerations",
    "TestPolicies",
    "TestPurging",
    "TestRuns",
    "TestUses",
]

pytestmark = [pytest.mark.slow, pytest.mark.database]


@pytest.fixture(params=["postgres", pytest.param("mariadb", marks=pytest.mark.long)], scope="module")
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    service: Service = request.getfixturevalue(request.param)
    engine = create_engine(service.address)
    METADATA.create_all(engine)
    yield engine
    METADATA.drop_all(engine)
    engine.dispose()


@pytest.fixture
def connection(engine: Engine) -> Iterator[Connection]:
    with engine.connect() as connection:
        yield connection
        connection.rollback()
