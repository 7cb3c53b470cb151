"""Orders of a Delta table and a stream of their totals, made by scripts as users start them. One order is wrong.

Order 4 costs a hundred times too much. Steps of production are contexts of one process, as in `corrections`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from tests.kit.cases.corrections import PRODUCTION
from tests.kit.cases.validation import ValidationPlace

TOTALS: Final = """
import sys
from pyspark.sql import SparkSession
db, checkpoint, *forever = sys.argv[1:]
spark = SparkSession.builder.appName("shop").getOrCreate()
sums = spark.readStream.table(f"{db}.orders").groupBy("item").sum("price").toDF("item", "total")
writer = sums.writeStream.format("delta").outputMode("complete").queryName("totals")
trigger = {"processingTime": "1 second"} if forever else {"availableNow": True}
query = writer.option("checkpointLocation", checkpoint).trigger(**trigger).toTable(f"{db}.totals")
query.awaitTermination()
spark.stop()
"""
"""With one more word it never ends in production, as most streams don't."""
WRONG: Final = 4
"""The version of the orders that is wrong."""


class StreamPlace(ValidationPlace):
    """The wrong order came by a batch that read a right one, too."""

    def begin_story(self) -> None:
        db = self.database
        self.place.script(TOTALS, "totals.py")
        self.place.script(PRODUCTION, "production.py")
        tables = [
            f"CREATE TABLE {db}.orders (id INT, item STRING, price INT) USING delta",
            f"CREATE TABLE {db}.totals (item STRING, total BIGINT) USING delta",
        ]
        first = {"sql": [f"CREATE DATABASE {db}", *tables, self.order(1, "a", 10)]}
        second = {"sql": [self.order(2, "b", 20)]}
        wrong = {"sql": [self.order(3, "a", 30), self.order(4, "b", 4000)]}
        self.play(first, self.stream(), second, self.stream(), wrong, self.stream())

    @property
    def checkpoint(self) -> str:
        return str(self.folder / "checkpoint")

    def order(self, number: int, item: str, price: int) -> str:
        return f"INSERT INTO {self.database}.orders VALUES ({number}, '{item}', {price})"

    def stream(self, checkpoint: str | None = None) -> dict[str, list[str]]:
        return {"job": ["totals.py", self.database, checkpoint or self.checkpoint]}

    def play(self, *steps: dict[str, list[str]]) -> None:
        (self.folder / "story.json").write_text(json.dumps(steps))
        ended = self.run("run", "production.py")
        assert ended.code == 0, ended.err[-3000:]

    def say_commands(self, job: str) -> None:
        lines = [
            f'[jobs."{job}"]',
            f'run = "totals.py {self.database} {self.checkpoint} forever"',
            'stop = "true"',
            f'start = "cp -r {{checkpoint}} {self.folder}/started"',
        ]
        (self.folder / "correction.toml").write_text("\n".join(lines))

    def correct(self, *words: str, code: int = 0) -> dict[str, Any]:
        """Return the answer of a command."""
        ended = self.run("correct", *words, "--store", self.store, "-o", "json")
        assert ended.code == code, (ended.out, ended.err[-3000:])
        return dict(json.loads(ended.out)) if ended.out.strip() else {}

    def totals(self) -> dict[str, int]:
        """Return what production has, from the files of the newest version of the table."""
        import pyarrow.parquet as pq

        place = self.folder / "spark" / "db.db" / "totals"
        there: dict[str, bool] = {}
        for log in sorted((place / "_delta_log").glob("*.json")):
            for action in map(json.loads, log.read_text().splitlines()):
                for word in ("add", "remove"):
                    if word in action:
                        there[action[word]["path"]] = word == "add"
        rows = [row for path, is_there in there.items() if is_there for row in pq.read_table(place / path).to_pylist()]
        return {row["item"]: row["total"] for row in rows}

    def forks(self) -> list[str]:
        return sorted(path.name for path in Path(self.folder).iterdir() if path.name.startswith("checkpoint__"))
