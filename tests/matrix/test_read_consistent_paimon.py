"""Consistent reads of Paimon's tables, whose extension can't be beside Iceberg's."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit.cases.consistent import Tables, explained, reading
from tests.kit.cases.lens import ids
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


def test_a_branch_is_read_at_what_goes_with_the_others(java_home: Path, tmp_path: Path) -> None:
    """Fails if a branch is read as it is now, or main at the branch's number."""
    tables = Tables(shared_driver(java_home, PAIMON), "paimon", tmp_path / "store.db")
    name, branch = tables.b.removeprefix("pai."), f"{tables.db}.`b$branch_fix`"
    tables.run(f"CALL pai.sys.create_tag(table => '{name}', tag => 'eod', snapshot => 1)")
    tables.run(f"CALL pai.sys.create_branch('{name}', 'fix', 'eod')")
    tables.run(tables.copying(branch))
    tables.copy(tables.c)
    tables.grow(3)
    tables.run(tables.copying(branch))
    query = f"SELECT id FROM {branch} UNION SELECT id FROM {tables.c}"
    assert ids(tables.driver.spark.sql(query)) == [1, 2, 3]
    with reading(tables.driver.spark, tables.store) as spark:
        assert ids(spark.sql(query)) == [1, 2]
        tables.copy(tables.c)
        assert ids(spark.sql(query)) == [1, 2, 3]
