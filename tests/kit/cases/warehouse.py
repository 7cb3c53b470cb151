"""A warehouse in which a job is validated that tries to write what is real, and what is left of the warehouse then."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from headwater.cli.exits import Exit
from tests.kit.cases import writing_ways
from tests.kit.cases.validation import ValidationPlace
from tests.kit.cases.writing_ways import Way
from tests.kit.drivers import PYTHON
from tests.kit.spark.driver import Extensions

ROOT: Final = str(Path(writing_ways.__file__).parents[3])
ROOTS: Final = ("ice", "pai", "spark")
"""What catalogs put their tables into, below a warehouse's folder."""
CATALOGS: Final = """
import json, sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
path, parts, *catalogs = sys.argv[1:]
found = {}

def describe(name, statement):
    found[name] = [list(map(str, row)) for row in spark.sql(statement).collect()]

for catalog in catalogs:
    for (namespace,) in spark.sql(f"SHOW NAMESPACES IN {catalog}").collect():
        if namespace.startswith("headwater_validation"):
            continue
        place = f"{catalog}.{namespace}"
        describe(place, f"DESCRIBE NAMESPACE EXTENDED {place}")
        for row in spark.sql(f"SHOW TABLES IN {place}").collect():
            describe(f"{place}.{row.tableName}", f"DESCRIBE TABLE EXTENDED {place}.{row.tableName}")
        if catalog == "spark_catalog":
            describe(f"{place} functions", f"SHOW USER FUNCTIONS IN {place}")
describe("partitions", f"SHOW PARTITIONS {parts}")
open(path, "w").write(json.dumps(found))
"""


class Warehouse:
    """A warehouse of some formats, with a job that was recorded. It adds rows to `DATABASE.appended`."""

    def __init__(
        self,
        folder: Path,
        java_home: Path,
        extensions: Extensions,
        statements: Sequence[str],
        *,
        script: str,
        table: str,
        using: str,
        parts: str,
    ) -> None:
        """`table` is the script's sink, `using` its format, and `parts` a table with partitions."""
        database = table.rpartition(".")[0]
        self.place = ValidationPlace(folder, java_home, extensions, database, using)
        self.place.place.environment["PYTHONPATH"] += f":{ROOT}"
        self.folder, self._script = folder, script
        self._looks_at = (parts, *dict.fromkeys((table.partition(".")[0], "spark_catalog")))
        (folder / "free").mkdir()
        (folder / "free" / "loaded").write_text("1")
        landing = folder / "spark" / "landing"
        landing.mkdir(parents=True)
        (landing / "rows.csv").write_text("1,10\n2,20\n")
        self.place.place.script(CATALOGS, "catalogs.py")
        self.place.record(statements, [[]], (), script)
        self.sink = f"{table}@{self.place.newest(table.rpartition('.')[2])}"

    @cached_property
    def state_at_first(self) -> tuple[dict[str, str], Any]:
        """Return the state before anything was validated: each test finds it again, so it is looked at once."""
        return self.state()

    def state(self) -> tuple[dict[str, str], Any]:
        """Return the contents of all files by name, and what catalogs say of all tables, which takes a driver."""
        ended = self.place.place.run(PYTHON, "catalogs.py", "catalogs.json", *self._looks_at, SPARK_HEADWATER="")
        assert ended.code == 0, ended.err[-3000:]
        return self.files(), json.loads((self.folder / "catalogs.json").read_text())

    def files(self) -> dict[str, str]:
        return {
            str(path.relative_to(self.folder)): sha256(path.read_bytes()).hexdigest()
            for root in ROOTS
            for path in (self.folder / root).rglob("*")
            if path.is_file() and "headwater_validation" not in str(path)
        }

    def validate(self, names: Sequence[str], *flags: str) -> tuple[Any, dict[str, Any], dict[str, tuple[str, str]]]:
        """Return how the validation of a script that tries these ways ended, its answer, and what came of each way.

        `--anyway`, because on a busy machine capture may not be through when the recorded job ends, which is a Gap.
        """
        outcomes = self.folder / "free" / "outcomes.jsonl"
        outcomes.unlink(missing_ok=True)
        ended, answer = self.place.validate(
            self.sink, shlex.join(names), "--copy", "--anyway", "--allow", "stream:rate*", *flags, script=self._script
        )
        lines = outcomes.read_text().splitlines() if outcomes.exists() else []
        return ended, answer, {name: (outcome, error) for name, outcome, error in map(json.loads, lines)}

    def check_that_none_reaches_what_is_real(self, names: Sequence[str], passing: Mapping[str, Way]) -> None:
        """That each way is refused but those that pass, that nothing was changed, and that nothing counts as equal."""
        before = self.state_at_first
        self.check_that_none_changes_a_file(names, passing)
        assert self.state() == before

    def check_that_none_changes_a_file(self, names: Sequence[str], passing: Mapping[str, Way]) -> None:
        """The same, and no catalog is asked, which takes two drivers more."""
        before = self.files()
        ended, answer, outcomes = self.validate(names)
        assert list(outcomes) == list(names), ended.err[-3000:]
        expected = {name: "done" if name in passing else "refused" for name in names}
        assert {name: each for name, each in outcomes.items() if each[0] != expected[name]} == {}
        assert self.files() == before
        assert ended.code == Exit.JOB_FAILED
        assert "can't be validated" in ended.err
        assert answer["validation"]["verdict"] == "not compared"

    def check_that_all_pass(self, passing: Mapping[str, Way]) -> None:
        """That each way is done, that the verdict is equal, and that nothing was changed."""
        before = self.state_at_first
        ended, answer, outcomes = self.validate(list(passing))
        assert {name: each for name, each in outcomes.items() if each[0] != "done"} == {}
        assert list(outcomes) == list(passing)
        assert ended.code == Exit.DONE, (answer, ended.err[-3000:])
        assert self.state() == before
