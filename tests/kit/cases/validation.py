"""Jobs that were recorded, to be validated: each a process as users start it, on tables that have grown since."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tests.kit.drivers import BIN, Ended, Place
from tests.kit.formats.hudi_place import HUDI_DEFAULTS, timeline_of
from tests.kit.spark.driver import DELTA, HUDI, ICEBERG, PAIMON, Extensions
from tests.kit.spark.packages import package_settings

SECONDS: Final = 800
FORMATS: Final[Mapping[str, tuple[Extensions, str]]] = {
    "iceberg": (ICEBERG, "ice.db"),
    "delta": (DELTA, "spark_catalog.db"),
    "paimon": (PAIMON, "pai.db"),
    "hudi": (HUDI, "spark_catalog.db"),
}
"""What each format's applications are started with, and the database of their tables."""
HEADWATER: Final = str(BIN / "headwater")
RECORD: Final = """
import json, runpy, shutil, sys
from pathlib import Path
from pyspark.sql import SparkSession

def run_statements(statements):
    if not statements:
        return
    spark = SparkSession.builder.appName("others").getOrCreate()
    for statement in statements:
        spark.sql(statement)
    spark.stop()

before, jobs, after = json.loads(Path("story.json").read_text())
run_statements(before)
for words in jobs:
    sys.argv = words
    runpy.run_path(words[0], run_name="__main__")
for each in ("ice", "pai", "spark"):
    if Path(each).exists():
        shutil.copytree(each, Path("then", each))
run_statements(after)
"""
"""Makes tables, runs jobs, and changes tables, one after the other: each makes a SparkContext, and so is an application
of its own. `then` keeps the files of the tables as the jobs left them."""
JOB: Final = """
import sys
from pyspark.sql import SparkSession
db, what, *more = sys.argv[1:]
spark = SparkSession.builder.appName(what).getOrCreate()
spark.sql(f"USE {db}")
WRONG = "+ 1" if "bug" in more else ""
SHOPS = f"SELECT shop, sum(amount) {WRONG} AS total, count(*) AS orders FROM orders GROUP BY shop"
if what == "append":
    spark.sql(f"INSERT INTO appended SELECT id, amount {WRONG}, shop FROM orders WHERE id > 1")
elif what == "overwrite":
    spark.sql(f"INSERT {'INTO' if 'adds' in more else 'OVERWRITE'} overwritten {SHOPS}")
elif what == "merge":
    spark.sql(
        f"MERGE INTO merged t USING ({SHOPS}) s ON t.shop = s.shop "
        "WHEN MATCHED THEN UPDATE SET total = t.total + s.total WHEN NOT MATCHED THEN INSERT *"
    )
elif what == "staged":
    spark.sql(f"CREATE TABLE staged_shops USING {more[0]} AS {SHOPS}")
    spark.sql("INSERT INTO staged SELECT shop, total * 2 AS total, orders FROM staged_shops")
elif what == "fails":
    spark.sql("INSERT INTO appended SELECT id, amount, shop FROM orders")
    raise ValueError("the job broke")
elif what == "place":
    location = more[1]
    spark.sql(f"CREATE OR REPLACE TABLE placed USING {more[0]} LOCATION '{location}' AS {SHOPS}")
else:
    raise SystemExit(f"no job {what}")
spark.stop()
"""


class ValidationPlace:
    """A warehouse of one format with jobs that were recorded in a lineage store."""

    def __init__(self, folder: Path, java_home: Path, extensions: Extensions, database: str, using: str) -> None:
        # A start that takes longer than it is waited for leaves a Gap, and a run with one isn't validated (exit 66).
        self.place = Place(folder, java_home, patience=SECONDS / 2)
        self.folder, self.database, self.using = folder, database, using
        conf = {key: value.replace("{warehouse}", str(folder)) for key, value in extensions.conf.items()}
        self.place.configure(
            {
                **conf,
                **package_settings(java_home, ",".join(extensions.packages)),
                "spark.sql.warehouse.dir": str(folder / "spark"),
                "spark.sql.catalogImplementation": "hive",
                "spark.driver.extraJavaOptions": f"-Dderby.system.home={folder} -XX:TieredStopAtLevel=1 "
                "-XX:+UseSerialGC",
                "spark.headwater.listeners": "jdbc",
                "spark.headwater.jdbc.url": f"jdbc:sqlite:{folder}/lineage.db",
                "spark.databricks.delta.snapshotPartitions": "1",
            }
        )
        self.place.script(JOB, "shops.py")
        (folder / "hudi-defaults.conf").write_text(HUDI_DEFAULTS)
        self.place.environment["HUDI_CONF_DIR"] = str(folder)

    @property
    def store(self) -> str:
        return str(self.folder / "lineage.db")

    def run(self, *words: str) -> Ended:
        """A validation is two processes, and on a busy machine slow ones."""
        with self.place.start((HEADWATER, *words)) as process:
            out, err = process.communicate(timeout=SECONDS)
        return self.place.ended(process.returncode, out, err)

    def record(
        self, before: Sequence[str], jobs: Sequence[Sequence[str]], after: Sequence[str], script: str = "shops.py"
    ) -> None:
        """Run statements of others, the job's script with each of these arguments, and statements of others."""
        words = [[script, self.database, *each] for each in jobs]
        (self.folder / "story.json").write_text(json.dumps([before, words, after]))
        self.place.script(RECORD, "record.py")
        ended = self.run("run", "record.py")
        assert ended.code == 0, ended.err[-3000:]

    def validate(self, sink: str, job: str, *flags: str, script: str = "shops.py") -> tuple[Ended, dict[str, Any]]:
        """Return how `headwater validate` ended, and its answer."""
        run = f"{script} {self.database} {job}"
        ended = self.run("validate", sink, "--store", self.store, "--run", run, "-o", "json", *flags)
        return ended, json.loads(ended.out) if ended.out.strip() else {}

    def newest(self, table: str) -> int:
        """Return a table's newest snapshot when the jobs had run, as its format's own files have it."""
        then = self.folder / "then"
        if self.using == "iceberg":
            folder = then / "ice" / "db" / table / "metadata"
            number = int((folder / "version-hint.text").read_text())
            return int(json.loads((folder / f"v{number}.metadata.json").read_text())["current-snapshot-id"])
        if self.using == "delta":
            log = then / "spark" / "db.db" / table / "_delta_log"
            return max(int(each.stem) for each in log.glob("*.json") if each.stem.isdigit())
        if self.using == "hudi":
            return timeline_of(then / "spark" / "db.db" / table)[-1].number
        return int((then / "pai" / "db.db" / table / "snapshot" / "LATEST").read_text())

    def files(self) -> Mapping[str, tuple[int, int]]:
        """Return all files of tables, with size and time: of the data and of the formats' own metadata."""
        roots = [each for each in (self.folder / "ice", self.folder / "pai", self.folder / "spark") if each.exists()]
        return {
            str(path.relative_to(self.folder)): (path.stat().st_size, path.stat().st_mtime_ns)
            for root in roots
            for path in root.rglob("*")
            if path.is_file()
        }
