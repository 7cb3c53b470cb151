"""`headwater reconcile` finds each commit that was made with headwater off, among others made with it on, and no more.

Headwater is attached to the same Spark for a while, and not for another while: what was committed then is read from the
files that the formats themselves wrote, by listing them.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from headwater.cli import main
from headwater.cli.exits import Exit
from headwater.events import Event
from headwater.lineage.mapping import map_event
from headwater.lineage.store import open_store
from tests.kit.formats.delta_racer import QUICK
from tests.kit.formats.hudi_place import HUDI_DEFAULTS
from tests.kit.formats.iceberg_truth import metadata_at
from tests.kit.spark.driver import DELTA, HUDI, ICEBERG, PAIMON, SECONDS, Extensions, attached
from tests.kit.spark.session import release, spark_session

pytestmark = pytest.mark.long

OFF = 50
PAIMON_KEEPS = "TBLPROPERTIES ('snapshot.num-retained.min' = '500', 'snapshot.num-retained.max' = '1000')"
HUDI_KEYED = "TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts')"
HUDI_ARCHIVES = "hoodie.keep.min.commits = '5', hoodie.keep.max.commits = '7', hoodie.clean.commits.retained = '3'"


def iceberg_commits(table: Path) -> set[str]:
    return {str(each) for each in metadata_at(table).ids}


def numbers_in(directory: Path, pattern: str) -> set[str]:
    found = (re.fullmatch(pattern, each.name) for each in directory.glob("*"))
    return {str(int(each[1])) for each in found if each}


def delta_commits(table: Path) -> set[str]:
    return numbers_in(table / "_delta_log", r"(\d{20})\.json")


def paimon_commits(table: Path) -> set[str]:
    branches = {
        f"{branch.name.removeprefix('branch-')}/{number}"
        for branch in (table / "branch").glob("branch-*")
        for number in numbers_in(branch / "snapshot", r"snapshot-(\d+)")
    }
    return numbers_in(table / "snapshot", r"snapshot-(\d+)") | branches


def hudi_commits(table: Path) -> set[str]:
    return numbers_in(table / ".hoodie" / "timeline", r"(\d+)_\d+\.(?:commit|deltacommit|replacecommit)")


@dataclass(frozen=True)
class Line:
    """A table format: how its tables are made and changed. `{n}` is a number that grows."""

    extensions: Extensions
    table: str
    """Its name; the last part is its directory's."""
    directory: str
    made: Sequence[str]
    changes: Sequence[str]
    commits: Callable[[Path], set[str]]
    conf: dict[str, str] = field(default_factory=dict)
    hudi_defaults: str = HUDI_DEFAULTS


LINES = {
    "iceberg": Line(
        ICEBERG,
        "ice.db.t",
        "{warehouse}/ice/db/t",
        (
            "CREATE TABLE {t} (id INT, v STRING) USING iceberg TBLPROPERTIES ('format-version' = '2')",
            "INSERT INTO {t} VALUES (0, 'a'), (1, 'b')",
            "ALTER TABLE {t} CREATE BRANCH br",
        ),
        (
            "INSERT INTO {t} VALUES ({n}, 'x')",
            "INSERT INTO {t}.branch_br VALUES ({n}, 'x')",
            "UPDATE {t} SET v = 'y{n}' WHERE id = 1",
            "DELETE FROM {t} WHERE id = {n} - 3",
            "INSERT OVERWRITE {t} SELECT * FROM {t}",
            "MERGE INTO {t} USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 'm{n}'",
            "CALL ice.system.rewrite_data_files(table => 'db.t', options => map('rewrite-all', 'true'))",
        ),
        iceberg_commits,
    ),
    "delta": Line(
        DELTA,
        "db.t",
        "{warehouse}/spark/db.db/t",
        ("CREATE TABLE {t} (id INT, v STRING) USING delta", "INSERT INTO {t} VALUES (0, 'a'), (1, 'b')"),
        (
            "INSERT INTO {t} VALUES ({n}, 'x')",
            "UPDATE {t} SET v = 'y{n}' WHERE id = 1",
            "DELETE FROM {t} WHERE id = {n} - 2",
            "INSERT OVERWRITE {t} SELECT * FROM {t}",
            "MERGE INTO {t} USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 'm{n}'",
            "ALTER TABLE {t} SET TBLPROPERTIES ('p' = '{n}')",
            "OPTIMIZE {t}",
        ),
        delta_commits,
        dict(QUICK),
    ),
    "paimon": Line(
        PAIMON,
        "pai.db.t",
        "{warehouse}/pai/db.db/t",
        (
            f"CREATE TABLE {{t}} (id INT, v STRING) {PAIMON_KEEPS}",
            "INSERT INTO {t} VALUES (0, 'a'), (1, 'b')",
        ),
        (
            "INSERT INTO {t} VALUES ({n}, 'x')",
            "UPDATE {t} SET v = 'y{n}' WHERE id = 1",
            "DELETE FROM {t} WHERE id = {n} - 2",
            "INSERT OVERWRITE {t} SELECT * FROM {t}",
            "CALL pai.sys.compact(table => 'db.t')",
        ),
        paimon_commits,
    ),
    "hudi": Line(
        HUDI,
        "db.t",
        "{warehouse}/spark/db.db/t",
        (
            f"CREATE TABLE {{t}} (id INT, v STRING, ts LONG) USING hudi {HUDI_KEYED}",
            "INSERT INTO {t} VALUES (0, 'a', 0), (1, 'b', 0)",
        ),
        (
            "INSERT INTO {t} VALUES ({n}, 'x', 1)",
            "UPDATE {t} SET v = 'y{n}' WHERE id = 1",
            "DELETE FROM {t} WHERE id = {n} - 2",
        ),
        hudi_commits,
    ),
}
LINES["hudi-archived"] = replace(
    LINES["hudi"],
    made=(LINES["hudi"].made[0][:-1] + f", {HUDI_ARCHIVES})", LINES["hudi"].made[1]),
    hudi_defaults=HUDI_DEFAULTS.replace("automatic false", "automatic true"),
)


@dataclass
class History:
    """What was committed: with headwater on, and with it off."""

    spark: Any
    line: Line
    directory: Path
    number: int = 10
    off: set[str] = field(default_factory=set)
    on: list[Event] = field(default_factory=list)

    def run(self, statements: Iterable[str]) -> None:
        for each in statements:
            self.number += 1
            self.spark.sql(each.replace("{t}", self.line.table).replace("{n}", str(self.number))).collect()

    def with_headwater(self, statements: Iterable[str]) -> None:
        with attached(self.spark) as (capture, bus):
            self.run(statements)
            assert capture.drain(SECONDS)
            assert not bus.faults, bus.faults
        self.on += bus.events

    def without_headwater(self, statements: Iterable[str]) -> None:
        for each in statements:  # a statement may archive older commits
            before = self.line.commits(self.directory)
            self.run([each])
            self.off |= self.line.commits(self.directory) - before


def repeated(changes: Sequence[str], count: int, start: int) -> list[str]:
    return [changes[(start + place) % len(changes)] for place in range(count)]


def play(line: Line, spark: Any, directory: Path) -> History:
    history = History(spark, line, directory)
    database = line.table.rpartition(".")[0]
    spark.sql(f"CREATE DATABASE IF NOT EXISTS {database}")
    history.with_headwater(line.made)
    place = 0
    while len(history.off) < OFF:
        history.with_headwater(repeated(line.changes, 4, place))
        missing = OFF - len(history.off)
        if missing <= 15:  # one by one, as a statement may make several commits, or none
            while len(history.off) < OFF:
                history.without_headwater(line.changes[:1])
        else:
            history.without_headwater(repeated(line.changes, 15, place))
        place += 15
    history.with_headwater(line.changes)
    return history


def reconciled(capsys: pytest.CaptureFixture[str], *flags: str) -> tuple[int, dict[str, Any]]:
    code = main(["reconcile", "--all", "--settled", "0s", "-o", "json", *flags])
    return code, json.loads(capsys.readouterr().out)


def marks(format_: str) -> list[pytest.MarkDecorator]:
    return [pytest.mark.needs(format_), pytest.mark.xdist_group(f"spark-{format_}")]


@pytest.mark.parametrize(
    "name",
    [pytest.param(each, marks=marks(each.partition("-")[0])) for each in LINES],
)
@pytest.mark.timeout(900)
def test_each_commit_made_with_headwater_off_is_found_and_nothing_else(
    name: str, java_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    line = LINES[name]
    release()
    (tmp_path / "hudi-defaults.conf").write_text(line.hudi_defaults)
    monkeypatch.setenv("HUDI_CONF_DIR", str(tmp_path))
    warehouse = Path(tempfile.mkdtemp(prefix="headwater-reconcile-", dir=tmp_path))
    conf = {key: value.replace("{warehouse}", str(warehouse)) for key, value in line.extensions.conf.items()}
    conf |= {key.replace("__", "."): value for key, value in line.conf.items()}
    conf["spark.jars.packages"] = ",".join(line.extensions.packages)
    conf.setdefault("spark.sql.warehouse.dir", str(warehouse / "spark"))
    conf.setdefault(
        "spark.driver.extraJavaOptions",
        f"-Dderby.system.home={warehouse} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Djol.skipHotspotSAAttach=true",
    )
    with spark_session(java_home, **conf) as spark:
        history = play(line, spark, Path(line.directory.replace("{warehouse}", str(warehouse))))
    assert len(history.off) == OFF
    if name == "hudi-archived":
        assert len(line.commits(history.directory)) < OFF
    monkeypatch.setenv("HEADWATER_STORE", str(tmp_path / "lineage.db"))
    with open_store(str(tmp_path / "lineage.db")) as store:
        store.merge(row for event in history.on for row in map_event(event))

    code, answer = reconciled(capsys)
    assert {each["snapshot"] for each in answer["commits"]} == history.off
    assert len(answer["commits"]) == OFF
    assert {each["status"] for each in answer["commits"]} == {"UNKNOWN"}
    assert code == Exit.FAILED

    assert reconciled(capsys, "--repair")[0] == Exit.FAILED
    code, answer = reconciled(capsys)
    assert (code, answer["commits"]) == (Exit.DONE, [])
    assert answer["tables"][0]["repaired_before"] == OFF
