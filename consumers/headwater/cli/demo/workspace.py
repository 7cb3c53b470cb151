"""The demo's directory: its configuration, and how jobs and the writer run in it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.resources import as_file, files
from pathlib import Path
from typing import Final

from headwater.cli.demo.requirements import Requirements
from headwater.errors import TerminalError
from headwater.local.process import LaunchSpec, ServerProcess, exit_text, tail

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
        return {"spark.headwater.read.consistent": "true", "spark.headwater.read.consistent.store": self.store}

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
        text = "\n".join("".join(f"{key} {value}\n" for key, value in each.items()) for each in sections)
        self.conf.write_text(text, encoding="utf-8")

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


def expect(code: int, *, fails: bool, log: Path) -> None:
    """Raise where a job ended otherwise than it should."""
    if (code != 0) != fails:
        how = "succeeded, and should have failed" if fails else f"failed ({exit_text(code)})"
        raise DemoError(f"{log.stem} {how}; its log:\n{tail(log)}")
