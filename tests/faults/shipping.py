"""What killed drivers left is shipped: by a bus in this process, or by the command."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from headwater.listeners.bus import Bus
from headwater.spi import Application
from tests.faults.kafka_conf import OPTIONS

PATIENCE = 60.0
HEADWATER = Path(sys.executable).parent / "headwater"


def spools_in(place: Path) -> list[Path]:
    """Those that are there, a driver's that runs too."""
    return [each for each in place.iterdir() if each.is_dir()] if place.exists() else []


def ship_by_bus(conf: Mapping[str, str], spools: Path) -> None:
    """Come back when nothing is left; an AssertionError if it doesn't come to that."""
    bus = Bus.open(conf, Application("application_shipper", "shipper"), options=OPTIONS)
    try:
        deadline = time.monotonic() + PATIENCE
        while spools_in(spools) != [bus.spool]:
            assert time.monotonic() < deadline, f"still there: {spools_in(spools)}; {bus.report()}; {bus.faults}"
            time.sleep(0.02)
    finally:
        assert bus.stop(60), bus.report()


def ship_by_command(conf: Mapping[str, str], spools: Path) -> None:
    """The same by `headwater spool ship`, again and again as it says."""
    flags = [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]
    deadline = time.monotonic() + PATIENCE
    while spools_in(spools):
        command = [str(HEADWATER), "spool", "ship", "--spool-dir", str(spools), *flags]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert time.monotonic() < deadline, f"still there: {spools_in(spools)}\n{done.stdout}{done.stderr}"
