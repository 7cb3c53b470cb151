"""Drivers as users start them, each a process of its own in a folder of its own, and what headwater reported of
them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.kit.waiting import PATIENCE

PYTHON = sys.executable
BIN = Path(PYTHON).parent
SECONDS = 500
PATIENT = """
from headwater.listeners.installation import contexts, installation
installation.Installation.end.__defaults__ = ({patience},)
contexts.STOP_SECONDS = {patience}
"""
"""For each Python of a driver. A job waits for headwater 2 s at its end, and goes on then without it; a machine on
which much else goes on can take longer, and what is reported, not how soon, is what is tested here."""
SEEN = '''
class Seen:
    """Writes each event as a line of JSON, at once."""

    def __init__(self, path):
        self.path = path

    def on_event(self, event):
        with open(self.path, "a") as file:
            file.write(event.model_dump_json(exclude_none=True) + "\\n")

    def on_missed(self, count):
        raise AssertionError(f"{count} events were missed")

    def flush(self, timeout): ...

    def close(self, timeout):
        return True

class SeenFactory:
    def create(self, context):
        return Seen(context.configuration["path"])
'''
SESSION = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.appName("orders").getOrCreate()
"""
Event = dict[str, Any]


@dataclass(frozen=True)
class Ended:
    """How a process ended, and what was reported of it."""

    code: int
    out: str
    err: str
    events: list[Event] = field(repr=False)

    def kinds(self) -> list[str]:
        return [event["kind"] for event in self.events]

    def of(self, kind: str) -> list[Event]:
        return [event for event in self.events if event["kind"] == kind]

    def statuses(self) -> list[str]:
        """As `job STATUS`, RUNNING left out."""
        reported = [f"{event['job']['name']} {event['status']}" for event in self.of("JobStatusChanged")]
        return [each for each in reported if not each.endswith(" RUNNING")]


class ProcessGroup(subprocess.Popen[str]):
    """A process in a session of its own. Leaving its block, however, ends it with all that it has started, such as the
    driver of a validation and the JVM: a test that fails or takes too long leaves nothing behind."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        super().__exit__(kind, error, at)


class Place:
    """A folder with a configuration for drivers that are started in it.

    With `patience=None` a job waits for headwater as long as it does elsewhere.
    """

    def __init__(
        self, folder: Path, java_home: Path, *, enabled: bool = True, patience: float | None = PATIENCE
    ) -> None:
        self.folder = folder
        if patience is not None:
            (folder / "sitecustomize.py").write_text(PATIENT.format(patience=patience))
        self.reported = folder / "told.jsonl"
        (folder / "conf").mkdir()
        (folder / "seen.py").write_text(SEEN)
        self.configure(
            {
                "spark.master": "local[2]",
                "spark.ui.enabled": "false",
                "spark.driver.memory": "1g",
                "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
                "spark.sql.shuffle.partitions": "2",
                "spark.headwater.enabled": str(enabled).lower(),
                "spark.headwater.listeners": "seen:SeenFactory",
                "spark.headwater.seen.path": str(self.reported),
                "spark.headwater.spool.dir": str(folder / "spool"),
                **({} if patience is None else {"spark.headwater.capture.wait": f"{patience:g} s"}),
            }
        )
        known = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK_", "SPARK_"))}
        self.environment = {
            **known,
            "JAVA_HOME": str(java_home),
            "SPARK_CONF_DIR": str(folder / "conf"),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYTHONPATH": os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]),
            "PYSPARK_PYTHON": PYTHON,
        }

    def configure(self, conf: Mapping[str, str]) -> None:
        """Add to spark-defaults.conf."""
        with (self.folder / "conf" / "spark-defaults.conf").open("a") as file:
            file.writelines(f"{key} {value}\n" for key, value in conf.items())

    def script(self, text: str, name: str = "job.py") -> str:
        (self.folder / name).write_text(text)
        return name

    def run(self, *command: str | Path, **environment: str) -> Ended:
        """Run a command to its end."""
        with self.start(command, **environment) as process:
            out, err = process.communicate(timeout=SECONDS)
        return self.ended(process.returncode, out, err)

    def python(self, text: str, *arguments: str, **environment: str) -> Ended:
        """Run a script by `python`."""
        return self.run(PYTHON, self.script(text), *arguments, **environment)

    def start(self, command: Sequence[str | Path], **environment: str) -> ProcessGroup:
        return ProcessGroup(
            command,
            cwd=self.folder,
            env={**self.environment, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def ended(self, code: int, out: str, err: str) -> Ended:
        lines = self.reported.read_text().splitlines() if self.reported.exists() else []
        self.reported.unlink(missing_ok=True)
        return Ended(code, out, err, [json.loads(line) for line in lines])
