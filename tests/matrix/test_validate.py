"""`headwater validate` on real tables: a planted bug is found, an unchanged job comes out equal, and no file of a real
table changes. Sources have grown since the jobs were recorded, so a source that isn't pinned shows as a difference.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headwater.cli.exits import Exit
from tests.kit.cases.validation import FORMATS, ValidationPlace
from tests.kit.spark.driver import ICEBERG, KAFKA, together
from tests.kit.spark.kafka_broker import NOW, Broker

if TYPE_CHECKING:
    from headwater.local import Service

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


OWN_PROPERTIES = {
    ("hudi", "merged"): " TBLPROPERTIES (primaryKey = 'shop')",
    ("hudi", "appended"): " TBLPROPERTIES ('hoodie.metadata.enable' = 'true')",
}


def statements(using: str, db: str) -> list[str]:
    shops = f"(shop STRING, total BIGINT, orders BIGINT) USING {using}"
    amounts = f"(id INT, amount INT, shop STRING) USING {using}"
    own = {table: OWN_PROPERTIES.get((using, table), "") for table in ("merged", "appended")}
    return [
        f"CREATE DATABASE {db}",
        f"CREATE TABLE {db}.orders {amounts}",
        f"CREATE TABLE {db}.appended {amounts} PARTITIONED BY (shop){own['appended']}",
        f"CREATE TABLE {db}.overwritten {shops}",
        f"CREATE TABLE {db}.merged {shops}{own['merged']}",
        f"CREATE TABLE {db}.staged {shops}",
        f"INSERT INTO {db}.orders VALUES (1, 10, 'a'), (2, 20, 'b')",
        f"INSERT INTO {db}.orders VALUES (3, 30, 'b'), (4, NULL, 'c')",
        f"INSERT INTO {db}.appended VALUES (1, 10, 'a')",
        f"INSERT INTO {db}.merged VALUES ('a', 5, 1), ('z', 7, 1)",
        f"INSERT INTO {db}.overwritten VALUES ('z', 9, 1)",
    ]


def later(db: str) -> list[str]:
    """What others do to the tables after the jobs have run."""
    return [
        f"INSERT INTO {db}.orders VALUES (5, 1000, 'a'), (6, 2000, 'q')",
        f"INSERT INTO {db}.appended VALUES (7, 7, 'a')",
    ]


class Recorded:
    """A place whose jobs have run, with the snapshot that each made, from the files of the formats."""

    def __init__(self, place: ValidationPlace, snapshots: dict[str, int]) -> None:
        self.place = place
        self.snapshots = snapshots

    def sink(self, table: str) -> str:
        return f"{self.place.database}.{table}@{self.snapshots[table]}"


JOBS = {"append": "appended", "overwrite": "overwritten", "merge": "merged", "staged": "staged"}


def recorded(folder: Path, java_home: Path, name: str) -> Recorded:
    extensions, db = FORMATS[name]
    place = ValidationPlace(folder, java_home, extensions, db, name)
    jobs = [[job, *([name] if job == "staged" else [])] for job in JOBS]
    place.record(statements(name, db), jobs, later(db))
    return Recorded(place, {table: place.newest(table) for table in JOBS.values()})


@pytest.fixture(scope="module")
def iceberg(tmp_path_factory: pytest.TempPathFactory, java_home: Path) -> Recorded:
    return recorded(tmp_path_factory.mktemp("iceberg"), java_home, "iceberg")


@pytest.fixture(scope="module")
def delta(tmp_path_factory: pytest.TempPathFactory, java_home: Path) -> Recorded:
    return recorded(tmp_path_factory.mktemp("delta"), java_home, "delta")


@pytest.fixture(scope="module")
def paimon(tmp_path_factory: pytest.TempPathFactory, java_home: Path) -> Recorded:
    return recorded(tmp_path_factory.mktemp("paimon"), java_home, "paimon")


@pytest.fixture(scope="module")
def hudi(tmp_path_factory: pytest.TempPathFactory, java_home: Path) -> Recorded:
    return recorded(tmp_path_factory.mktemp("hudi"), java_home, "hudi")


EQUAL_ROWS = {"append": 3, "overwrite": 3, "merge": 4, "staged": 3}
"""By hand: orders 2, 3 and 4; the shops a, b and c; those and z, which was there before."""


def check_equal(recorded: Recorded, job: str, arguments: str = "") -> None:
    before = recorded.place.files()
    ended, answer = recorded.place.validate(recorded.sink(JOBS[job]), f"{job} {arguments}".strip())
    assert ended.code == Exit.DONE, (answer, ended.err[-3000:])
    rows = answer["rows"]
    assert (rows["recorded"], rows["result"], rows["equal"]) == (EQUAL_ROWS[job],) * 3
    assert recorded.place.files() == before


def check_bug(recorded: Recorded) -> None:
    """The total of each shop is one too much, and so is each amount."""
    before = recorded.place.files()
    ended, answer = recorded.place.validate(recorded.sink("overwritten"), "overwrite bug", "--key", "shop")
    assert ended.code == Exit.FAILED, (answer, ended.err[-3000:])
    assert answer["rows"] | {} == {
        **dict.fromkeys(("recorded", "result"), 3),
        "equal": 1,
        "only_recorded": 0,
        "only_in_the_result": 0,
        "different": 2,
    }
    assert answer["different"] == [
        {"key": "shop=a", "column": "total", "recorded": "10", "result": "11"},
        {"key": "shop=b", "column": "total", "recorded": "50", "result": "51"},
    ]
    ended, answer = recorded.place.validate(recorded.sink("appended"), "append bug")
    assert ended.code == Exit.FAILED, (answer, ended.err[-3000:])
    assert (answer["rows"]["only_recorded"], answer["rows"]["only_in_the_result"]) == (2, 2)
    assert recorded.place.files() == before


def check_other_use(recorded: Recorded) -> None:
    """A changed job adds its rows, where the recorded one replaced all: the row of before stays."""
    sink = recorded.sink("overwritten")
    ended, _ = recorded.place.validate(sink, "overwrite adds")
    assert ended.code == Exit.JOB_FAILED, ended.err[-3000:]
    assert "replaced all rows of it first" in ended.err
    ended, answer = recorded.place.validate(sink, "overwrite adds", "--copy")
    assert ended.code == Exit.FAILED, (answer, ended.err[-3000:])
    assert answer["rows_only_in_the_result"] == [{"times": 1, "row": "shop=z, total=9, orders=1"}]


@pytest.mark.needs("iceberg")
@pytest.mark.parametrize("job", JOBS)
def test_an_unchanged_job_comes_out_equal_on_iceberg(iceberg: Recorded, job: str) -> None:
    """Fails if a source is read as it is now, if what others wrote is compared, or a sink is written."""
    check_equal(iceberg, job, "iceberg" if job == "staged" else "")


@pytest.mark.needs("iceberg")
def test_a_planted_bug_is_found_on_iceberg(iceberg: Recorded) -> None:
    """Fails if the result isn't compared, or is compared with itself."""
    check_bug(iceberg)


@pytest.mark.needs("iceberg")
def test_a_key_that_there_isnt_is_said_before_the_job_runs(iceberg: Recorded) -> None:
    """The job would fail, and nobody would hear of the key."""
    ended, _ = iceberg.place.validate(iceberg.sink("appended"), "fails", "--key", "idd")
    assert ended.code == Exit.CONFIGURATION, ended.err[-3000:]
    assert "the key has the column 'idd', which the snapshot hasn't: there are id, amount, shop" in ended.err
    assert "the job broke" not in ended.err


@pytest.mark.needs("iceberg")
def test_a_job_that_adds_where_it_replaced_all_is_not_equal_on_iceberg(iceberg: Recorded) -> None:
    """Fails if a result that begins empty is compared although the job doesn't replace what was there."""
    check_other_use(iceberg)


@pytest.mark.needs("delta")
@pytest.mark.parametrize("job", JOBS)
def test_an_unchanged_job_comes_out_equal_on_delta(delta: Recorded, job: str) -> None:
    check_equal(delta, job, "delta" if job == "staged" else "")


@pytest.mark.needs("delta")
def test_a_planted_bug_is_found_on_delta(delta: Recorded) -> None:
    check_bug(delta)


@pytest.mark.needs("delta")
def test_a_job_that_adds_where_it_replaced_all_is_not_equal_on_delta(delta: Recorded) -> None:
    check_other_use(delta)


TOPIC_JOB = """
import sys
from pyspark.sql import SparkSession
db, servers, topic, until, *more = sys.argv[1:]
spark = SparkSession.builder.appName("topic").getOrCreate()
options = {"kafka.bootstrap.servers": servers, "subscribe": topic, "endingTimestamp": until}
rows = spark.read.format("kafka").options(**options).load()
after = "offset + 1 AS next" if more else "offset AS next"
rows.selectExpr("string(value) AS value", after).writeTo(f"{db}.read").append()
spark.stop()
"""


@pytest.mark.kafka
@pytest.mark.needs("iceberg", "kafka")
def test_a_topic_is_read_as_far_as_the_job_read_it(tmp_path: Path, java_home: Path, kafka: Service) -> None:
    """Fails if records count that came after the job. They are older than the time up to which it reads."""
    broker = Broker(kafka.address)
    topic = broker.topic("validated", (1_000, 2_000), (1_000,))
    place = ValidationPlace(tmp_path, java_home, together(ICEBERG, KAFKA), "ice.db", "iceberg")
    place.place.script(TOPIC_JOB, "topic.py")
    words = [broker.servers, topic, str(NOW + 9_000)]
    place.record(
        ["CREATE DATABASE ice.db", "CREATE TABLE ice.db.read (value STRING, next BIGINT) USING iceberg"],
        [words],
        [],
        script="topic.py",
    )
    sink = f"ice.db.read@{place.newest('read')}"
    broker.add(topic, 0, 3_000)
    for more, code, equal in (([], Exit.DONE, 3), (["bug"], Exit.FAILED, 0)):
        ended, answer = place.validate(sink, " ".join([*words, *more]), script="topic.py")
        assert ended.code == code, (answer, ended.err[-3000:])
        assert (answer["rows"]["recorded"], answer["rows"]["result"], answer["rows"]["equal"]) == (3, 3, equal)


@pytest.mark.needs("paimon")
@pytest.mark.parametrize("job", [each for each in JOBS if each != "merge"])
def test_an_unchanged_job_comes_out_equal_on_paimon(paimon: Recorded, job: str) -> None:
    check_equal(paimon, job, "paimon" if job == "staged" else "")


@pytest.mark.needs("paimon")
def test_a_planted_bug_is_found_on_paimon(paimon: Recorded) -> None:
    check_bug(paimon)


@pytest.mark.needs("paimon")
def test_a_job_that_adds_where_it_replaced_all_is_not_equal_on_paimon(paimon: Recorded) -> None:
    check_other_use(paimon)


@pytest.mark.needs("hudi")
@pytest.mark.parametrize("job", JOBS)
def test_an_unchanged_job_comes_out_equal_on_hudi(hudi: Recorded, job: str) -> None:
    """Fails, too, if Hudi's own columns are compared, or its timeline or metadata table is written."""
    check_equal(hudi, job, "hudi" if job == "staged" else "")


@pytest.mark.needs("hudi")
def test_a_planted_bug_is_found_on_hudi(hudi: Recorded) -> None:
    check_bug(hudi)


@pytest.mark.needs("hudi")
def test_a_job_that_adds_where_it_replaced_all_is_not_equal_on_hudi(hudi: Recorded) -> None:
    check_other_use(hudi)
