"""A server that `headwater run` hosts, and its clients: each a process of its own."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from headwater.local.process import free_ports
from tests.kit.drivers import BIN, SECONDS, Ended, Event, Place
from tests.kit.spark.packages import package_settings
from tests.kit.spark.versions import MAJOR

CONNECT = () if MAJOR >= 4 else (f"org.apache.spark:spark-connect_2.12:{version('pyspark')}",)
CLIENT = Path(__file__).with_name("connect_client.py")
"""Runs what it is handed on its standard input, as a client of Connect."""


@dataclass
class Served:
    """A server while it runs, and what was reported when it has ended."""

    port: int
    address: str
    ended: Ended | None = field(default=None)

    def reported(self) -> Ended:
        assert self.ended is not None
        return self.ended


def configure(place: Place, packages: tuple[str, ...], conf: Mapping[str, str]) -> None:
    """With these packages, out of headwater's cache."""
    jars = package_settings(Path(place.environment["JAVA_HOME"]), ",".join(packages)) if packages else {}
    place.configure(
        {
            **jars,
            **{key: value.replace("{warehouse}", str(place.folder)) for key, value in conf.items()},
        }
    )


@contextmanager
def serving(place: Place, *words: str, ending: signal.Signals = signal.SIGTERM) -> Generator[Served, None, None]:
    """`headwater --output json run …`, from when clients can come until it is stopped by this signal."""
    port = free_ports(1)[0]
    command: list[str | Path] = [BIN / "headwater", "--output", "json", "run", *words, "--port", str(port)]
    with (place.folder / "server.log").open("w+") as log:
        process = subprocess.Popen(
            command,
            cwd=place.folder,
            env=place.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        with process:
            try:
                assert process.stdout is not None
                line = next((line for line in process.stdout if line.startswith("{")), "")  # Ivy has its say before
                assert line, Path(log.name).read_text()
                served = Served(port, next(iter(json.loads(line).values()))["address"])
                yield served
                process.send_signal(ending)
                out, _ = process.communicate(timeout=SECONDS)
            finally:
                process.kill()
        served.ended = place.ended(process.returncode, out, Path(log.name).read_text())


def sessions(ended: Ended) -> list[Event]:
    """What was reported of sessions that began."""
    return [event for event in ended.of("JobStarted") if event["scope"] == "SESSION"]
