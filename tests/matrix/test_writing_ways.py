"""No way to write reaches what is real under `headwater validate`: each is tried by a script, in one driver, and then
all files of the warehouse and all that its catalogs say are what they were. `writing_ways.py` has the ways.

It finds what no test of the lens alone does: a way around SQL, which the lens doesn't see, and a verdict that says
"equal" although something didn't run.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import pytest

from headwater.cli.exits import Exit
from tests.kit.cases import writing_ways
from tests.kit.cases.validation import ValidationPlace
from tests.kit.drivers import PYTHON
from tests.kit.spark.driver import DELTA, ICEBERG, together

pytestmark = [pytest.mark.timeout(900), pytest.mark.needs("iceberg", "delta")]

SCRIPT: Final = str(Path(writing_ways.__file__))
CATALOGS: Final = """
import json, sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
found = {}

def describe(name, statement):
    found[name] = [list(map(str, row)) for row in spark.sql(statement).collect()]

for catalog in ("ice", "spark_catalog"):
    for (namespace,) in spark.sql(f"SHOW NAMESPACES IN {catalog}").collect():
        if namespace.startswith("headwater_validation"):
            continue
        place = f"{catalog}.{namespace}"
        describe(place, f"DESCRIBE NAMESPACE EXTENDED {place}")
        for row in spark.sql(f"SHOW TABLES IN {place}").collect():
            describe(f"{place}.{row.tableName}", f"DESCRIBE TABLE EXTENDED {place}.{row.tableName}")
        if catalog == "spark_catalog":
            describe(f"{place} functions", f"SHOW USER FUNCTIONS IN {place}")
describe("partitions", "SHOW PARTITIONS spark_catalog.db.parts")
open(sys.argv[1], "w").write(json.dumps(found))
"""
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


class Warehouse:
    """A warehouse of Iceberg, Delta, Hive's tables and plain files, with a job that was recorded."""

    def __init__(self, folder: Path, java_home: Path) -> None:
        self.place = ValidationPlace(folder, java_home, together(ICEBERG, DELTA), "ice.db", "iceberg")
        self.folder = folder
        (folder / "free").mkdir()
        (folder / "free" / "loaded").write_text("1")
        landing = folder / "spark" / "landing"
        landing.mkdir(parents=True)
        (landing / "rows.csv").write_text("1,10\n2,20\n")
        self.place.place.script(CATALOGS, "catalogs.py")
        self.place.record(STATEMENTS, [[]], (), SCRIPT)
        self.sink = f"ice.db.appended@{self.place.newest('appended')}"

    def state(self) -> tuple[dict[str, str], Any]:
        """Return the contents of all files by name, and what catalogs say of all tables."""
        ended = self.place.place.run(PYTHON, "catalogs.py", "catalogs.json", SPARK_HEADWATER="")
        assert ended.code == 0, ended.err[-3000:]
        files = {
            str(path.relative_to(self.folder)): sha256(path.read_bytes()).hexdigest()
            for root in ("ice", "spark")
            for path in (self.folder / root).rglob("*")
            if path.is_file() and "headwater_validation" not in str(path)
        }
        return files, json.loads((self.folder / "catalogs.json").read_text())

    def validate(self, names: Sequence[str], *flags: str) -> tuple[Any, dict[str, Any], dict[str, tuple[str, str]]]:
        """Return how the validation of a script that tries these ways ended, its answer, and what came of each way."""
        outcomes = self.folder / "free" / "outcomes.jsonl"
        outcomes.unlink(missing_ok=True)
        ended, answer = self.place.validate(
            self.sink, shlex.join(names), "--copy", "--allow", "stream:rate*", *flags, script=SCRIPT
        )
        lines = outcomes.read_text().splitlines() if outcomes.exists() else []
        return ended, answer, {name: (outcome, error) for name, outcome, error in map(json.loads, lines)}


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory, java_home: Path) -> Warehouse:
    return Warehouse(tmp_path_factory.mktemp("ways"), java_home)


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


def check_that_none_reaches_what_is_real(warehouse: Warehouse, names: Sequence[str]) -> None:
    before = warehouse.state()
    ended, answer, outcomes = warehouse.validate(names)
    assert list(outcomes) == list(names), ended.err[-3000:]
    wrong = {name: each for name, each in outcomes.items() if each[0] != expected(name)}
    assert wrong == {}
    assert warehouse.state() == before
    assert ended.code == Exit.JOB_FAILED
    assert "can't be validated" in ended.err
    assert answer["validation"]["verdict"] == "not compared"


def expected(name: str) -> str:
    return "done" if name in writing_ways.PASSING else "refused"


def test_a_sample_of_all_ways(warehouse: Warehouse) -> None:
    """The others are `long`."""
    check_that_none_reaches_what_is_real(warehouse, SAMPLE)


@pytest.mark.long
@pytest.mark.parametrize("group", [each for each in writing_ways.GROUPS if each != "passing"])
def test_no_way_reaches_what_is_real(warehouse: Warehouse, group: str) -> None:
    """Fails for a way that isn't refused, that fails by itself and so proves nothing, or that leaves a trace."""
    check_that_none_reaches_what_is_real(warehouse, list(writing_ways.GROUPS[group]))


@pytest.mark.long
def test_what_is_harmless_passes_and_the_verdict_is_equal(warehouse: Warehouse) -> None:
    """Fails if the allow-list is so short that ordinary jobs can't be validated, `foreachBatch` among them."""
    names, before = list(writing_ways.PASSING), warehouse.state()
    ended, answer, outcomes = warehouse.validate(names)
    assert {name: each for name, each in outcomes.items() if each[0] != "done"} == {}
    assert list(outcomes) == names
    assert ended.code == Exit.DONE, (answer, ended.err[-3000:])
    assert warehouse.state() == before


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
