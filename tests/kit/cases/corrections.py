"""A warehouse of orders and products, made by scripts as users start them, in which one order is wrong.

Production goes on after the correction is begun. All of its steps are contexts of one process, each an application of
its own, so that a story costs one start of Java.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tests.kit.cases.validation import ValidationPlace
from tests.kit.drivers import PYTHON

STATEMENTS: Final = {
    "details": "INSERT INTO {db}.details SELECT o.id, p.name, o.amount * p.price AS total FROM {db}.orders o "
    "JOIN {db}.products p ON o.product = p.id LEFT ANTI JOIN {db}.details d ON o.id = d.id",
    "revenue": "INSERT OVERWRITE {db}.revenue SELECT sum(total) AS total, count(*) AS orders FROM {db}.details",
    "top10": "INSERT OVERWRITE {db}.top10 SELECT name, sum(total) AS total FROM {db}.details "
    "GROUP BY name ORDER BY total DESC, name LIMIT 10",
}
"""How each table is made. The details get the orders that they haven't yet."""
JOBS: Final = {"details": ("details",), "daily": ("revenue", "top10")}
"""The tables that each job writes."""
JOB: Final = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.appName("{job}").getOrCreate()
for statement in {statements}:
    spark.sql(statement.format(db=sys.argv[1]))
spark.stop()
"""
PRODUCTION: Final = """
import json, runpy, sys
from pyspark.sql import SparkSession

with open("story.jsonl") as story:
    for line in story:
        step = json.loads(line)
        if "job" in step:
            sys.argv = step["job"]
            runpy.run_path(sys.argv[0], run_name="__main__")
        else:
            spark = SparkSession.builder.appName("ingest").getOrCreate()
            for statement in step["sql"]:
                spark.sql(statement)
            spark.stop()
        print("played", flush=True)
"""
"""The story may be a pipe, whose other end says what is played next."""
STORY: Final = "story.jsonl"
CORRECT: Final = """
import sys
from pyspark.sql import SparkSession
from headwater.lineage.store import open_store
from headwater.versions.correction.execution import correction
db, store, name = sys.argv[1:]
spark = SparkSession.builder.appName("repair").getOrCreate()
with open_store(store) as opened, correction(spark, opened, name):
    spark.sql(f"INSERT OVERWRITE {db}.orders SELECT id, product, IF(id = 3, 1, amount) AS amount FROM {db}.orders")
spark.stop()
"""
"""The user's own session corrects the rows, in a way that each format has."""
LOOK: Final = """
import json, sys
from pyspark.sql import SparkSession
from headwater.lineage.store import open_store
from headwater.versions.correction.execution import correction
db, store, name = sys.argv[1:]
spark = SparkSession.builder.appName("look").config("spark.headwater.enabled", "false").getOrCreate()

def rows():
    return {t: sorted(tuple(r) for r in spark.table(f"{db}.{t}").collect()) for t in TABLES}

TABLES = ("orders", "products", "details", "revenue", "top10")
found = {"production": rows()}
if name != "none":
    with open_store(store) as opened, correction(spark, opened, name):
        found["mirrors"] = rows()
print(json.dumps(found))
spark.stop()
"""
ORDERS: Final = {1: (1, 3), 2: (2, 4), 3: (1, 1), 4: (2, 1), 5: (1, 2)}
"""Each order's product and amount, in a world without the error."""
WRONG_AMOUNT: Final = 999
TRUTH: Final[dict[str, list[tuple[Any, ...]]]] = {
    "orders": [(id_, product, amount) for id_, (product, amount) in ORDERS.items()],
    "products": [(1, "a", 5), (2, "b", 7)],
    "details": [(1, "a", 15), (2, "b", 28), (3, "a", 5), (4, "b", 7), (5, "a", 10)],
    "revenue": [(65, 5)],
    "top10": [("a", 30), ("b", 35)],
}
"""By hand: an order costs its amount times the price of its product."""
WRONG: Final[dict[str, list[tuple[Any, ...]]]] = {
    "orders": [(1, 1, 3), (2, 2, 4), (3, 1, 999), (4, 2, 1), (5, 1, 2)],
    "products": TRUTH["products"],
    "details": [(1, "a", 15), (2, "b", 28), (3, "a", 4995), (4, "b", 7), (5, "a", 10)],
    "revenue": [(5055, 5)],
    "top10": [("a", 5020), ("b", 35)],
}
"""What production has."""
TABLES: Final = {
    "orders": "id INT, product INT, amount INT",
    "products": "id INT, name STRING, price INT",
    "details": "id INT, name STRING, total INT",
    "revenue": "total BIGINT, orders BIGINT",
    "top10": "name STRING, total BIGINT",
}


def created(database: str, using: str) -> list[str]:
    """Return the statements that make the database and its tables."""
    tables = [f"CREATE TABLE {database}.{table} ({columns}) USING {using}" for table, columns in TABLES.items()]
    return [f"CREATE DATABASE IF NOT EXISTS {database}", *tables]


class CorrectedPlace(ValidationPlace):
    """Order 3 is wrong, in the second commit to the orders; order 4 came after it."""

    statements: Mapping[str, str] = STATEMENTS

    def begin_story(self) -> None:
        """Let production make the tables, the error, and what comes of it."""
        self.write_scripts()
        db = self.database
        first = [
            *created(db, self.using),
            f"INSERT INTO {db}.products VALUES (1, 'a', 5), (2, 'b', 7)",
            self._order(1, 2),
        ]
        wrong = f"INSERT INTO {db}.orders VALUES (3, 1, {WRONG_AMOUNT})"
        self.play({"sql": first}, *self.jobs, {"sql": [wrong]}, *self.jobs)

    def write_scripts(self) -> None:
        """Lay out the jobs, and how they are run again."""
        for job, tables in JOBS.items():
            statements = [self.statements[table] for table in tables]
            self.place.script(JOB.format(job=job, statements=statements), f"{job}.py")
        for name, text in (("repair.py", CORRECT), ("look.py", LOOK), ("production.py", PRODUCTION)):
            self.place.script(text, name)
        (self.folder / "correction.toml").write_text(
            "".join(f'[jobs."{job}"]\nrun = "{job}.py {self.database}"\n' for job in JOBS)
        )

    def go_on(self, *more: dict[str, list[str]]) -> None:
        """Let production get an order, and make all from it."""
        self.play({"sql": [self._order(4)]}, *self.jobs, {"sql": [self._order(5)]}, *self.jobs, *more)

    @property
    def jobs(self) -> list[dict[str, list[str]]]:
        return [{"job": [f"{job}.py", self.database]} for job in JOBS]

    def play(self, *steps: dict[str, list[str]]) -> None:
        (self.folder / STORY).write_text("".join(f"{json.dumps(step)}\n" for step in steps))
        ended = self.run("run", "production.py")
        assert ended.code == 0, ended.err[-3000:]

    def repair(self, name: str) -> dict[str, list[str]]:
        """Return the step that corrects the rows on the mirror."""
        return {"job": ["repair.py", self.database, self.store, name]}

    def correct(self, *words: str, code: int = 0) -> dict[str, Any]:
        """Return the answer of a command."""
        ended = self.run("correct", *words, "--store", self.store, "-o", "json")
        assert ended.code == code, (ended.out, ended.err[-3000:])
        return dict(json.loads(ended.out)) if ended.out.strip() else {}

    def look(self, name: str = "none") -> dict[str, dict[str, list[tuple[Any, ...]]]]:
        """Return the rows of production, and of the mirrors of a correction."""
        ended = self.place.run(PYTHON, "look.py", self.database, self.store, name)
        assert ended.code == 0, ended.err[-3000:]
        found = json.loads(ended.out.splitlines()[-1])  # Ivy says things before it
        return {side: {table: [tuple(row) for row in rows] for table, rows in of.items()} for side, of in found.items()}

    def wrong_snapshot(self) -> int:
        """Return the snapshot of the wrong order, from the table's own files."""
        if self.using != "iceberg":
            return 2
        folder = self.folder / "ice" / "db" / "orders" / "metadata"
        newest = max(folder.glob("v*.metadata.json"), key=lambda path: int(path.name.split(".")[0][1:]))
        return int(json.loads(Path(newest).read_text())["snapshots"][1]["snapshot-id"])

    def mirrors(self) -> list[str]:
        """Return what is there of mirrors: directories of clones and branches."""
        roots = [each for each in (self.folder / "spark", self.folder / "pai") if each.exists()]
        return sorted(path.name for root in roots for path in root.rglob("*correction_*") if path.is_dir())

    def _order(self, *numbers: int) -> str:
        rows = ", ".join(f"({number}, {ORDERS[number][0]}, {ORDERS[number][1]})" for number in numbers)
        return f"INSERT INTO {self.database}.orders VALUES {rows}"
