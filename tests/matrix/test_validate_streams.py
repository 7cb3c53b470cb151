"""A stream's snapshot is validated by a batch script, and two versions of a table are compared: PIP-5's own example.

Other validations are of batch jobs, whose snapshots have one statement behind them.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headwater.cli.exits import Exit
from tests.kit.cases.validation import FORMATS, ValidationPlace

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]
SCRIPT = """
import sys
from pyspark.sql import SparkSession
db, what, *more = sys.argv[1:]
spark = SparkSession.builder.appName(f"words {what}").getOrCreate()
COUNTS = "SELECT word, count(*) AS cnt FROM words GROUP BY word"
spark.sql(f"USE {db}")
if what == "insert":
    spark.sql(f"INSERT INTO words VALUES {', '.join(f'({each!r})' for each in more)}")
elif what == "stream":
    counts = spark.readStream.format("iceberg").load(f"{db}.words").groupBy("word").count()
    sink = counts.withColumnRenamed("count", "cnt").writeStream.outputMode("complete").trigger(availableNow=True)
    sink.option("checkpointLocation", "checkpoint").toTable(f"{db}.counts").awaitTermination()
elif what == "batch":
    spark.sql(f"INSERT INTO counts {COUNTS.replace('count(*)', 'count(*) + 1') if more else COUNTS}")
spark.stop()
"""


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory, java_home: Path) -> ValidationPlace:
    """Words that a stream counted twice, and one that came later."""
    extensions, database = FORMATS["iceberg"]
    place = ValidationPlace(tmp_path_factory.mktemp("words"), java_home, extensions, database, "iceberg")
    place.place.script(SCRIPT, "words.py")
    before = [
        f"CREATE DATABASE {database}",
        f"CREATE TABLE {database}.words (word STRING) USING iceberg",
        f"CREATE TABLE {database}.counts (word STRING, cnt BIGINT) USING iceberg",
    ]
    jobs = [["insert", "a", "b"], ["stream"], ["insert", "a", "c"], ["insert", "c"], ["stream"]]
    place.record(before, jobs, [f"INSERT INTO {database}.words VALUES ('later')"], script="words.py")
    return place


def snapshots(place: ValidationPlace) -> list[int]:
    """Those of the counts, oldest first, as Iceberg's own metadata has them; the first one has rows."""
    folder = place.folder / "then" / "ice" / "db" / "counts" / "metadata"
    number = int((folder / "version-hint.text").read_text())
    found = json.loads((folder / f"v{number}.metadata.json").read_text())["snapshots"]
    return [int(each["snapshot-id"]) for each in found]


def test_a_batch_script_makes_what_the_stream_had_made(words: ValidationPlace) -> None:
    files = words.files()
    first, *_, newest = snapshots(words)
    for snapshot, rows in ((newest, 3), (first, 2)):
        ended, answer = words.validate(f"{words.database}.counts@{snapshot}", "batch", script="words.py")
        assert ended.code == Exit.DONE, (answer, ended.err[-3000:])
        assert (answer["rows"]["recorded"], answer["rows"]["equal"]) == (rows, rows)
        assert any("a stream made it" in each for each in answer["validation"]["notes"])
    assert words.files() == files


def test_a_planted_bug_is_found(words: ValidationPlace) -> None:
    sink = f"{words.database}.counts@{snapshots(words)[-1]}"
    ended, answer = words.validate(sink, "batch bug", "--key", "word", script="words.py")
    assert ended.code == Exit.FAILED, (answer, ended.err[-3000:])
    assert (answer["rows"]["different"], answer["rows"]["equal"]) == (3, 0)


def test_two_versions_are_compared(words: ValidationPlace) -> None:
    first, *_, newest = (f"{words.database}.counts@{each}" for each in snapshots(words))
    ended = words.run("table", "diff", first, newest, "--key", "word", "-o", "json")
    assert ended.code == Exit.FAILED, ended.err[-3000:]
    answer = json.loads(ended.out)
    assert answer["versions"] == {"first": first, "second": newest, "verdict": "different"}
    rows = answer["rows"]
    assert (rows["first"], rows["second"], rows["equal"], rows["different"], rows["only_in_the_second"]) == (
        2,
        3,
        1,
        1,
        1,
    )
    assert words.run("table", "diff", newest, newest).code == Exit.DONE
    ended = words.run("table", "diff", f"{words.database}.counts@1", newest)
    assert (ended.code, "counts@1 can't be read" in ended.err) == (Exit.CONFIGURATION, True), ended.err[-2000:]
