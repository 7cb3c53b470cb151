"""The demo's directory: its configuration, and how jobs and the writer run in it.

What the demo needs on this machine, found before anything is begun.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import as_file, files
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from headwater.errors import ConfigurationError, TerminalError
from headwater.local import JavaRuntime, MissingRequirementError, java
from headwater.local.errors import FetchError
from headwater.local.fetch import iceberg_runtime
from headwater.local.java import java_home_for_spark
from headwater.local.process import LaunchSpec, ServerProcess, exit_text, tail
from headwater.plugins import extra_command


@dataclass(frozen=True)
class Requirements:
    spark: Path
    """The home of the Spark that pyspark carries."""
    spark_version: str
    java: JavaRuntime
    java_home: Path
    """What JAVA_HOME has to be for that Spark."""
    iceberg: Path


def find_requirements(iceberg: Path | None = None) -> Requirements:
    """Return what is there; what is missing is an error that says how to get it."""
    spark, spark_version = _spark()
    chosen = java()
    jar = _given_jar(iceberg) if iceberg else _iceberg(spark_version)
    return Requirements(spark, spark_version, chosen, java_home_for_spark(chosen, spark_version), jar)


def make_directory(keep: Path | None) -> Path:
    """Return a directory that is the demo's own."""
    if keep is None:
        return Path(tempfile.mkdtemp(prefix="headwater-demo-"))
    place = keep.expanduser().absolute()
    if any(character.isspace() or character in ",\\" for character in str(place)):
        raise ConfigurationError(f"Spark's configuration takes no blanks, commas or backslashes in a path: {place}")
    try:
        place.mkdir(parents=True, exist_ok=True)
        is_empty = not any(place.iterdir())
    except OSError as e:
        raise ConfigurationError(f"{place} can't be used ({e.strerror}): name another directory by --keep") from e
    if not is_empty:
        raise ConfigurationError(f"there is something in {place} already: name a new directory by --keep")
    return place


def _spark() -> tuple[Path, str]:
    spec = find_spec("pyspark")
    try:
        found = version("pyspark")
    except PackageNotFoundError:
        found = None
    if spec is None or not spec.submodule_search_locations or found is None:
        raise MissingRequirementError(
            f"the demo runs Spark, and pyspark isn't installed here: {extra_command('demo')}, "
            "or `make demo` in a checkout"
        )
    return Path(next(iter(spec.submodule_search_locations))), found


def _iceberg(spark_version: str) -> Path:
    try:
        return iceberg_runtime(spark_version)
    except FetchError as e:
        raise FetchError(
            f"{e}\nThe demo's tables are Iceberg's, whose jar is fetched once from Maven Central or your mirror of it. "
            "Without a network: headwater demo --iceberg iceberg-spark-runtime-….jar"
        ) from e


def _given_jar(jar: Path) -> Path:
    if not jar.is_file():
        raise ConfigurationError(f"{jar} is no file: --iceberg names the jar of iceberg-spark-runtime")
    return jar.absolute()


_MINUTES: Final = 10
_OF_OTHERS: Final = ("SPARK_", "PYSPARK_", "HEADWATER_")
_SPARK: Final = {
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.lake.type": "hadoop",
}
_RERUN: Final = {"order_details": "jobs/details_again.py", "daily_report": "jobs/mended_report.py {date}"}
"""How a correction runs the jobs again."""
_HEADWATER: Final = {"spark.headwater.enabled": "true", "spark.headwater.listeners": "log"}


class DemoError(TerminalError):
    """A job of the demo ended otherwise than it should; the message has the end of its log."""


class Workspace:
    def __init__(self, requirements: Requirements, place: Path) -> None:
        self.place = place
        self.requirements = requirements
        self.page = place / "lineage.html"
        self.store = f"sqlite:///{place / 'lineage.db'}"
        self.log = place / "log"
        self.logs = place / "logs"
        self.jobs = place / "jobs"
        self.conf = place / "spark.conf"
        for each in (self.logs, self.log):  # the writer wants the log's directory to be there before a driver makes it
            each.mkdir()
        self._lay_out()

    def headwater_conf(self) -> Mapping[str, str]:
        """Return the only properties of headwater that the jobs have."""
        return {
            **_HEADWATER,
            "spark.headwater.log.dir": str(self.log),
            "spark.headwater.spool.dir": str(self.place / "spool"),
        }

    def consistent_conf(self) -> Mapping[str, str]:
        """Return what lets queries read snapshots that belong together."""
        return {
            "spark.headwater.read.consistent": "true",
            "spark.headwater.read.consistent.store": self.store,
            "spark.headwater.read.consistent.timeout": "60s",  # this machine may be busy
        }

    def run_module(self, module: str, *arguments: str, name: str) -> int:
        """Run one of our modules to its end, in the demo's directory, and return the exit code."""
        return self._run([sys.executable, "-m", module, *arguments], self.logs / f"{name}.log")

    def submit(self, script: str, *arguments: str, name: str, conf: Mapping[str, str]) -> int:
        """Run a script by spark-submit to its end, and return the exit code."""
        command = [str(self.requirements.spark / "bin" / "spark-submit"), "--properties-file", str(self.conf)]
        more = [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
        return self._run([*command, *more, str(self.jobs / script), *arguments], self.logs / f"{name}.log")

    @contextmanager
    def run_writer(self) -> Generator[None, None, None]:
        """While this holds, a writer fills the store; when it ends without an error all is in the store."""
        headwater = [sys.executable, "-m", "headwater.cli"]
        write = [*headwater, "writer", "run", "--bus", f"log:{self.log}", "--store", self.store]
        log = self.logs / "writer.log"
        launch = LaunchSpec(write, log, self.place, environ=self._environment())
        writer = ServerProcess(launch, gentle=signal.SIGTERM, remove=None)
        try:
            yield
            is_well = writer.running
        finally:
            writer.stop()
        if not is_well:
            raise DemoError(f"the writer ended ({writer.exit}), and shouldn't have; its log:\n{tail(log)}")
        # What a driver could not hand over within its last two seconds, and what the writer hadn't read yet.
        for rest in ([*headwater, "spool", "ship", "--properties-file", str(self.conf)], [*write, "--until-end"]):
            if self._run(rest, log):
                raise DemoError(f"not everything came into the store; the writer's log:\n{tail(log)}")

    def _lay_out(self) -> None:
        with as_file(files("headwater.cli.demo").joinpath("jobs")) as scripts:
            self.jobs.mkdir()
            for script in scripts.glob("*.py"):
                (self.jobs / script.name).write_bytes(script.read_bytes())
        tables = {
            "spark.jars": str(self.requirements.iceberg),
            "spark.sql.catalog.lake.warehouse": str(self.place / "warehouse"),
        }
        sections = (_SPARK | tables, self.headwater_conf())
        text = "\n".join("".join(f"{key} {value}\n" for key, value in section.items()) for section in sections)
        self.conf.write_text(text, encoding="utf-8")
        commands = (f'[jobs."{job}"]\nrun = "{command}"\n' for job, command in _RERUN.items())
        (self.place / "correction.toml").write_text("\n".join(commands), encoding="utf-8")

    def _environment(self) -> dict[str, str]:
        """Return the environment without what is set for another Spark or another store."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(_OF_OTHERS)}
        own = {"JAVA_HOME": str(self.requirements.java_home), "SPARK_HOME": str(self.requirements.spark)}
        return {**kept, **own, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}

    def _run(self, command: Sequence[str], log: Path) -> int:
        """Run a command in a session of its own: where we are interrupted, all of it is."""
        with log.open("ab") as out:
            process = subprocess.Popen(  # noqa: S603 - our own commands
                command,
                cwd=self.place,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            return process.wait(60 * _MINUTES)
        except subprocess.TimeoutExpired:
            raise DemoError(f"{log.stem} didn't end within {_MINUTES} minutes; its log:\n{tail(log)}") from None
        finally:
            if process.poll() is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def store_conf(place: Path) -> dict[str, str]:
    """Return what lets a driver tell the store itself, without a log and a writer."""
    return {
        "spark.headwater.listeners": "jdbc",
        "spark.headwater.jdbc.url": f"jdbc:sqlite:{place / 'lineage.db'}",
        "spark.headwater.spool.dir": str(place / "spool-store"),
    }


def expect(code: int, *, fails: bool, log: Path) -> None:
    """Raise where a job ended otherwise than it should."""
    if (code != 0) != fails:
        how = "succeeded, and should have failed" if fails else f"failed ({exit_text(code)})"
        raise DemoError(f"{log.stem} {how}; its log:\n{tail(log)}")
