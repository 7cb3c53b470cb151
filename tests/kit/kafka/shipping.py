"""What killed drivers left is shipped: by a bus in this process, or by the command."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from headwater.listeners.bus import Bus
from headwater.spi import Application
from tests.kit.kafka.conf import OPTIONS
from tests.kit.waiting import PATIENCE, attempts, until

HEADWATER = Path(sys.executable).parent / "headwater"


def spools_in(place: Path) -> list[Path]:
    """Those that are there, a driver's that runs too."""
    return [each for each in place.iterdir() if each.is_dir()] if place.exists() else []


def ship_by_bus(conf: Mapping[str, str], spools: Path) -> None:
    """Come back when nothing is left; an AssertionError if it doesn't come to that."""
    bus = Bus.open(conf, Application("application_shipper", "shipper"), options=OPTIONS)
    try:
        until(
            lambda: spools_in(spools) == [bus.spool],
            lambda: f"still there: {spools_in(spools)}; {bus.report()}; {bus.faults}",
            PATIENCE,
        )
    finally:
        assert bus.stop(60), bus.report()


def ship_by_command(conf: Mapping[str, str], spools: Path) -> None:
    """The same by `headwater spool ship`, again and again as it says."""
    flags = [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]
    said: list[str] = []
    for _ in attempts(lambda: f"still there: {_files_in(spools)}\n{said[-1:]}", PATIENCE):
        if not spools_in(spools):
            return
        command = [str(HEADWATER), "spool", "ship", "--spool-dir", str(spools), *flags]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
        said.append(done.stdout + done.stderr)


def _files_in(spools: Path) -> list[str]:
    """What is left of each: a spool with segments waits for somebody, one without has been removed by halves."""
    return [str(each.relative_to(spools)) for spool in spools_in(spools) for each in (spool, *sorted(spool.rglob("*")))]
