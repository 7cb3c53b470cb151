"""Consistent reads of Paimon's tables, whose extension can't be beside Iceberg's."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit.cases.consistent import Tables, explained, reading
from tests.kit.spark.driver import PAIMON, shared_driver

pytestmark = [pytest.mark.xdist_group("spark-paimon"), pytest.mark.needs("paimon"), pytest.mark.long]


def test_a_session_reads_what_belongs_together(java_home: Path, tmp_path: Path) -> None:
    """Fails if nothing is pinned, or to a snapshot that isn't that of the rows."""
    tables = Tables(shared_driver(java_home, PAIMON), "paimon", tmp_path / "store.db")
    with reading(tables.driver.spark, tables.store) as spark:
        assert tables.alone(tables.driver.spark) == [2]
        assert tables.alone(spark) == []
        assert f"{tables.b} VERSION AS OF 1 " in explained(
            spark, f"SELECT * FROM {tables.b} JOIN {tables.c} USING (id)"
        )
        tables.copy(tables.c)
        assert tables.alone(spark) == []
