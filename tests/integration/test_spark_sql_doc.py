"""What docs/spark-sql.md says is run as it stands there."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from headwater.consumers.spark import AVRO_LIMITS
from headwater.events.avro import released
from headwater.events.kinds import KINDS
from tests.kit.spark import messages as m
from tests.kit.spark.session import add_from_avro_to_sql, spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# pyspark leaves the sockets that it collects rows by to the garbage collector.
pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.sample(1, keep=("test_every_sql_has_an_expectation",)),
]
ROOT = Path(__file__).parents[2]
DOC = (ROOT / "docs/spark-sql.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", DOC, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def spark(java_home: Path) -> Iterator[SparkSession]:
    properties = dict(line.split(maxsplit=1) for line in blocks("properties")[0].splitlines())
    with spark_session(java_home, **properties) as session:
        add_from_avro_to_sql(session)
        rows = [
            ("now", m.VERSIONS["now"]),
            ("unread", m.BAD["cut by one"][0]),
            ("empty", b""),
        ]
        rows += [("future", m.VERSIONS["new"]), ("crafted", m.lying("list", -2_000_000_000))]
        values = [(name, n, bytearray(value or b"")) for n, (name, value) in enumerate(rows)]
        session.createDataFrame(values, "key string, offset bigint, value binary").createOrReplaceTempView("messages")
        for block in blocks("python"):
            exec(block, {"spark": session, "newer": [m.NEW.text]})  # noqa: S102  # the documentation's own text
        yield session


@pytest.mark.long
@pytest.mark.parametrize("number", range(len(blocks("sql"))))
def test_every_sql_of_the_documentation_runs(spark: SparkSession, number: int) -> None:
    rows = [row.asDict() for row in spark.sql(blocks("sql")[number]).collect()]
    assert EXPECTED[number](rows), rows


_GENERATION = "9c12d441-03fe-4693-9a96-a0705ddf690"
_PRODUCER = str(m.COMMITTED.producer)
_BARRIER = m.COMMITTED.barrier
EXPECTED: list[Any] = [
    lambda rows: (
        [(r["kind"], r["schema_version"], r["problem"], r["count(1)"]) for r in rows]
        == [
            (None, None, "empty", 1),
            ("Committed", m.NEWEST.version, None, 1),
            ("Committed", m.NEWEST.version, "malformed", 2),
            ("Committed", m.NEW.version, None, 1),
        ]
    ),
    lambda rows: (
        [r["generation"] for r in rows if r["offset"] == 0] == [f"{_GENERATION}{n}" for n in (1, 2, 3)]
        and {r["offset"]: r["barrier"] for r in rows} == {0: _BARRIER, 3: _BARRIER}
    ),
    lambda rows: [(r["offset"], r["barrier"]) for r in rows] == [(0, _BARRIER)],
    lambda rows: (
        {r["offset"]: (r["event"]["barrier"], r["event"]["note"]) for r in rows}
        == {0: (_BARRIER, "none"), 1: (None, None), 3: (_BARRIER, "from the future"), 4: (None, None)}
    ),
    lambda rows: (
        [(r["producer"], r["generation"]) for r in rows] == [(_PRODUCER, f"{_GENERATION}4".replace("-", "").upper())]
    ),
]


def test_every_sql_has_an_expectation() -> None:
    assert len(blocks("sql")) == len(EXPECTED)


def test_the_command_prints_every_schema() -> None:
    (command,) = blocks("sh")
    code = re.fullmatch(r'python -c "\n(.*)"\n', command, re.DOTALL)
    assert code is not None
    done = subprocess.run([sys.executable, "-c", code[1]], cwd=ROOT, capture_output=True, text=True, check=True)
    printed = [line.split("\t") for line in done.stdout.splitlines()]
    assert {(kind, print_) for kind, _, print_, _ in printed} == {
        (s.kind, s.fingerprint.hex().upper()) for s in released()
    }
    assert {kind for kind, *_ in printed} == set(KINDS)


def test_the_limits_are_those_of_the_package(spark: SparkSession) -> None:
    assert {line.split(maxsplit=1)[1] for line in blocks("properties")[0].splitlines()} == {AVRO_LIMITS}
    found = spark.table("committed").where("key = 'crafted'").collect()
    assert [row["problem"] for row in found] == ["malformed"]
