"""Plays the scenarios of the conformance suite on a real Spark, with a producer of lineage in its driver.

Ours: events into a local log, and from there by the OpenLineage forwarder into a file. OpenLineage's own agent writes a
file itself.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import as_file, files
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from headwater.conformance import Finding, judge, load_scenarios, read_observations
from headwater.conformance.collecting import read_events
from tests.kit.spark.packages import package_settings
from tests.kit.spark.versions import SCALA, packages

AGENT: Final = f"io.openlineage:openlineage-spark_{SCALA}:1.53.0"
SECONDS: Final = 900
_SPARK: Final = {
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.driver.memory": "1500m",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


@dataclass(frozen=True)
class Played:
    """Where the events of a producer are, and what the scenarios observed."""

    events: Path
    observed: Path

    def findings(self) -> list[Finding]:
        """What the judge says."""
        events, others = read_events([str(self.events)])
        assert events
        assert not others
        return judge(load_scenarios(), read_observations(self.observed), events)


def play_with_headwater(folder: Path, java_home: Path, scenarios: Sequence[str] = ()) -> Played:
    """Play scenarios, all of them unless some are named, with headwater in the driver."""
    log = folder / "log"
    log.mkdir()
    conf = {
        "spark.headwater.enabled": "true",
        "spark.headwater.listeners": "log",
        "spark.headwater.log.dir": str(log),
        "spark.headwater.spool.dir": str(folder / "spool"),
    }
    properties = _play(folder, java_home, conf, packages("iceberg"), scenarios)
    # What the driver could not hand over within the two seconds that it waits at its end.
    _headwater("spool", "ship", "--properties-file", str(properties))
    events = folder / "events.ndjson"
    options = ("--option", f"openlineage.file={events}", "--state", str(folder / "state"), "--until-end")
    _headwater("forward", "run", "openlineage", "--bus", f"log:{log}", *options)
    return Played(events, folder / "played")


def _headwater(*command: str) -> None:
    words = [sys.executable, "-m", "headwater.cli", *command]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert ended.returncode == 0, ended.stderr[-3000:]


def play_with_agent(folder: Path, java_home: Path, scenarios: Sequence[str] = ()) -> Played:
    """Play scenarios with OpenLineage's agent for Spark in the driver."""
    events = folder / "events.ndjson"
    conf = {
        "spark.extraListeners": "io.openlineage.spark.agent.OpenLineageSparkListener",
        "spark.openlineage.transport.type": "file",
        "spark.openlineage.transport.location": str(events),
    }
    _play(folder, java_home, conf, (*packages("iceberg"), AGENT), scenarios)
    return Played(events, folder / "played")


def _play(
    folder: Path, java_home: Path, conf: Mapping[str, str], needed: Sequence[str], scenarios: Sequence[str]
) -> Path:
    spec = find_spec("pyspark")
    assert spec
    assert spec.submodule_search_locations
    home = Path(next(iter(spec.submodule_search_locations)))
    settings = {**_SPARK, **package_settings(java_home, ",".join(needed)), **conf}
    properties = folder / "spark.conf"
    properties.write_text("".join(f"{key} {value}\n" for key, value in settings.items()))
    known = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK_", "SPARK_"))}
    own = {"JAVA_HOME": str(java_home), "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    with as_file(files("headwater.conformance").joinpath("scripts")) as scripts:
        command = [home / "bin" / "spark-submit", "--properties-file", properties, scripts / "run.py"]
        ended = subprocess.run(
            [*map(str, command), "--to", str(folder / "played"), *scenarios],
            cwd=folder,
            env={**known, **own},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    assert ended.returncode == 0, ended.stdout + ended.stderr[-5000:]
    return properties
