"""No way to write reaches what is real under `headwater validate`: each is tried by a script, in one driver, and then
all files of the warehouse and all that its catalogs say are what they were. `writing_ways.py` has the ways.

It finds what no test of the lens alone does: a way around SQL, which the lens doesn't see, and a verdict that says
"equal" although something didn't run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from headwater.cli.exits import Exit
from tests.kit.cases import writing_ways
from tests.kit.cases.warehouse import Warehouse
from tests.kit.spark.driver import DELTA, ICEBERG, together

pytestmark = [pytest.mark.timeout(900), pytest.mark.needs("iceberg", "delta")]

SCRIPT: Final = str(Path(writing_ways.__file__))
STATEMENTS: Final = (
    "CREATE DATABASE ice.db",
    "CREATE DATABASE spark_catalog.db",
    *(f"CREATE TABLE ice.db.{name} (id INT, amount INT) USING iceberg" for name in ("orders", "appended", "other")),
    *(
        f"CREATE TABLE spark_catalog.db.{name} (id INT, amount INT) USING delta"
        for name in ("delta_out", "delta_other")
    ),
    "CREATE TABLE spark_catalog.db.files (id INT, amount INT) USING parquet",
    "CREATE TABLE spark_catalog.db.parts (id INT) PARTITIONED BY (p INT) STORED AS PARQUET",
    "CREATE VIEW spark_catalog.db.a_view AS SELECT 1 AS id",
    "CREATE FUNCTION spark_catalog.db.a_function AS 'org.apache.hadoop.hive.ql.udf.generic.GenericUDFAbs'",
    "INSERT INTO spark_catalog.db.parts PARTITION (p = 1) SELECT 1",
    *(
        f"INSERT INTO {table} VALUES ({number}, 10)"
        for table in ("ice.db.orders", "ice.db.other", "spark_catalog.db.delta_other", "spark_catalog.db.files")
        for number in (1, 2)
    ),
)


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory, java_home: Path) -> Warehouse:
    return Warehouse(
        tmp_path_factory.mktemp("ways"),
        java_home,
        together(ICEBERG, DELTA),
        STATEMENTS,
        script=SCRIPT,
        table="ice.db.appended",
        using="iceberg",
        parts="spark_catalog.db.parts",
    )


SAMPLE: Final = tuple(name for group in writing_ways.GROUPS.values() for name in list(group)[::12])
"""Some of each group: those that are there to pass, too."""
ENDS: Final = {
    "thread": (Exit.JOB_FAILED, "doesn't redirect ice.db.other"),
    "thread of its own rows": (Exit.FAILED, None),
    "pool": (Exit.FAILED, None),
    "atexit": (Exit.JOB_FAILED, "is closed, since the script is over"),
    "atexit in a new session": (Exit.JOB_FAILED, "can't be validated"),
    "atexit that hides its error": (Exit.JOB_FAILED, "is closed, since the script is over"),
    "stream": (Exit.DONE, None),
    "swallowed": (Exit.JOB_FAILED, "doesn't redirect ice.db.other"),
    "nothing": (Exit.DONE, None),
}
"""How a validation ends, by how its script goes on. A row that a thread adds is one of the script's."""


def test_a_sample_of_all_ways(warehouse: Warehouse) -> None:
    """The others are `long`."""
    warehouse.check_that_none_reaches_what_is_real(SAMPLE, writing_ways.PASSING)


@pytest.mark.long
@pytest.mark.parametrize("group", [each for each in writing_ways.GROUPS if each != "passing"])
def test_no_way_reaches_what_is_real(warehouse: Warehouse, group: str) -> None:
    """Fails for a way that isn't refused, that fails by itself and so proves nothing, or that leaves a trace."""
    warehouse.check_that_none_reaches_what_is_real(list(writing_ways.GROUPS[group]), writing_ways.PASSING)


@pytest.mark.long
def test_what_is_harmless_passes_and_the_verdict_is_equal(warehouse: Warehouse) -> None:
    """Fails if the allow-list is so short that ordinary jobs can't be validated, `foreachBatch` among them."""
    warehouse.check_that_all_pass(writing_ways.PASSING)


@pytest.mark.long
@pytest.mark.parametrize("way", ENDS)
def test_what_goes_on_when_the_script_is_through_is_a_part_of_it(warehouse: Warehouse, way: str) -> None:
    """A thread wrote into a real table once the lens had ended, and the verdict was equal."""
    code, why = ENDS[way]
    before = warehouse.state()
    ended, answer, _ = warehouse.validate([f"end:{way}"])
    assert ended.code == code, (answer, ended.err[-3000:])
    assert why is None or why in ended.err
    if code == Exit.FAILED:
        assert answer["rows_only_in_the_result"] == [{"times": 1, "row": "id=9, amount=9"}]
    assert warehouse.state() == before
