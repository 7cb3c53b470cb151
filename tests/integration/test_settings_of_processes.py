"""Settings of a properties file stand in no command line and no environment of any process that a driver starts.

Other tests see which settings a driver has; this one sees what `ps` and its children see.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from tests.kit.cases.validation import FORMATS, ValidationPlace
from tests.kit.drivers import BIN, SECONDS, Place
from tests.kit.spark.hosting import CONNECT, configure, serving
from tests.kit.spark.java_programs import jar
from tests.kit.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.spark]
SECRET = "zx9Kv-geheim-41"
VALUES = {
    "spark.headwater.kafka.producer.sasl.password": SECRET,
    "spark.headwater.kafka.bootstrap.servers": "127.0.0.1:9",
    "spark.hadoop.fs.s3a.secret.key": f"a b\\\\c\\tö {SECRET}",
    "spark.headwater.listeners": "seen:SeenFactory,kafka",
}
READ = "a b\\c\tö " + SECRET
SCRIPT = f"""
import pathlib, time
from pyspark.sql import SparkSession
spark = SparkSession.builder.appName("orders").getOrCreate()
assert spark.conf.get("spark.hadoop.fs.s3a.secret.key") == {READ!r}
assert spark.conf.get("spark.headwater.seen.path"), "spark-defaults.conf holds too"
spark.range(1).rdd.map(lambda row: row.id).collect()
pathlib.Path("ready").touch()
while not pathlib.Path("go").exists():
    time.sleep(0.05)
"""
MAIN = """
import java.nio.file.*;

public class Main {
    public static void main(String[] arguments) throws Exception {
        Files.createFile(Paths.get("ready"));
        while (!Files.exists(Paths.get("go"))) Thread.sleep(50);
    }
}
"""


VALIDATED = """
import pathlib, time
from pyspark.sql import SparkSession
spark = SparkSession.builder.appName("orders").getOrCreate()
spark.sql("INSERT INTO ice.db.made SELECT id FROM ice.db.orders")
pathlib.Path("ready").touch()
while not pathlib.Path("go").exists():
    time.sleep(0.05)
"""
TABLES = ["CREATE DATABASE ice.db", "CREATE TABLE ice.db.orders (id INT) USING iceberg"]
TABLES += ["CREATE TABLE ice.db.made (id INT) USING iceberg", "INSERT INTO ice.db.orders VALUES (1)"]


@pytest.fixture
def place(tmp_path: Path, java_home: Path) -> Place:
    write_secrets(tmp_path, VALUES)
    return Place(tmp_path, java_home, enabled=False, patience=None)


def write_secrets(folder: Path, values: Mapping[str, str]) -> None:
    file = folder / "secret.conf"
    file.touch(mode=0o600)
    file.write_text("".join(f"{key} = {value}\n" for key, value in values.items()))


def read(file: Path) -> bytes:
    """What a file of /proc holds; nothing once its process is gone."""
    try:
        return file.read_bytes()
    except OSError:
        return b""


def children_of(process: int) -> set[int]:
    """The process and all below it."""
    stats = {int(each.name): read(each / "stat") for each in Path("/proc").iterdir() if each.name.isdigit()}
    parents = {each: int(stat.rpartition(b")")[2].split()[1]) for each, stat in stats.items() if stat}
    family = {process}
    while more := {each for each, parent in parents.items() if parent in family} - family:
        family |= more
    return family


def seen_of(process: int) -> dict[str, bytes]:
    """What others can see of it and of all below it."""
    files = (Path(f"/proc/{each}/{name}") for each in children_of(process) for name in ("cmdline", "environ"))
    return {str(file): read(file) for file in files}


def check(process: int) -> None:
    seen = seen_of(process)
    assert len([each for each in seen.values() if b"java" in each]) >= 1, "the JVM is among them"
    assert [where for where, data in seen.items() if SECRET.encode() in data] == []


@contextmanager
def running(place: Place, *words: str | Path, how: str = "run") -> Generator[subprocess.Popen[str]]:
    command = [BIN / "headwater", how, "--properties-file", "secret.conf", *words]
    with place.start(command) as process:
        until(lambda: (place.folder / "ready").exists() or process.poll() is not None, "the driver", SECONDS)
        assert process.poll() is None, process.communicate()
        yield process
        (place.folder / "go").touch()
        out, err = process.communicate(timeout=SECONDS)
        assert process.returncode == 0, (out, err)


def files_of_settings(process: int) -> list[Path]:
    """The files of properties that the JVM was started with."""
    words = b"\0".join(seen_of(process).values()).decode("utf-8", "replace").split("\0")
    return [Path(value) for flag, value in pairwise(words) if flag == "--properties-file"]


@pytest.mark.long
def test_a_scripts_settings_are_in_a_file_of_its_own(place: Place) -> None:
    with running(place, place.script(SCRIPT)) as process:
        check(process.pid)
        (file,) = {each for each in files_of_settings(process.pid) if each.name != "secret.conf"}
        assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
        assert SECRET in file.read_text()
    assert not file.parent.exists()


@pytest.mark.long
def test_a_main_classs_settings(place: Place, tmp_path: Path, java_home: Path) -> None:
    (tmp_path / "app").mkdir()
    with running(place, "--class", "acme.Main", jar(tmp_path / "app", java_home, Main=MAIN)) as process:
        check(process.pid)


@pytest.mark.long
def test_a_connect_servers_settings(place: Place) -> None:
    configure(place, CONNECT, {})
    with serving(place, "--properties-file", "secret.conf", "--connect"):
        started = [each for each in children_of(os.getpid()) if b"--connect" in read(Path(f"/proc/{each}/cmdline"))]
        assert started
        for each in started:
            check(each)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_validated_jobs_settings(tmp_path: Path, java_home: Path) -> None:
    """The job of `headwater validate` is a process of its own, which gets its settings from the one that was called."""
    extensions, database = FORMATS["iceberg"]
    validated = ValidationPlace(tmp_path, java_home, extensions, database, "iceberg")
    validated.place.script(VALIDATED, "waits.py")
    (tmp_path / "go").touch()
    validated.record(TABLES, [[]], [], "waits.py")
    for each in ("go", "ready"):
        (tmp_path / each).unlink()
    write_secrets(tmp_path, {key: value for key, value in VALUES.items() if "listeners" not in key})
    what = (f"ice.db.made@{validated.newest('made')}", "--store", validated.store, "--run", "waits.py")
    with running(validated.place, *what, how="validate") as process:
        check(process.pid)
