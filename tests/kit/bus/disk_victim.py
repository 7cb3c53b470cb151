"""A driver on a small disk, told line by line what to do: a program of test_small_disk.

Usage: python -m tests.kit.bus.disk_victim DISK SPOOLS SHARED. Each line of standard input is a JSON
list, a method of `Victim` and its arguments; each gets a line with what came of it.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

from headwater.errors import TransientError
from headwater.events import Gap, Heartbeat
from headwater.listeners.bus import Bus
from headwater.spi import RecordBatch, SpoolPosition
from tests.kit.bus.scripts import QUICK, SCRIPTS, Taking
from tests.kit.faults.small_disk import SmallDisk

_CAP_DAC_OVERRIDE = 1


class Gated(Taking):
    """Takes nothing while it is shut."""

    is_open = False

    def handle(self, batch: RecordBatch) -> SpoolPosition | None:
        if not Gated.is_open:
            raise TransientError("shut")
        return super().handle(batch)


class Victim:
    def __init__(self, disk: SmallDisk, spools: Path, shared: Path | None) -> None:
        self._disk = disk
        self._spools = spools
        self._shared = shared
        self._bus: Bus | None = None
        self._listener = Gated()
        SCRIPTS["mine"] = lambda _: self._listener

    @property
    def bus(self) -> Bus:
        assert self._bus is not None
        return self._bus

    def open(self, keys: dict[str, str]) -> str | None:
        conf = {"spool.dir": str(self._spools), "spool.fsync": "none", **keys}
        conf["listeners"] = "mine=tests.kit.bus.scripts:ScriptFactory"
        from headwater.spi import Application

        flat = {f"spark.headwater.{key}": value for key, value in conf.items()}
        self._bus = Bus.open(flat, Application("application_1", "orders"), options=QUICK)
        return str(self.bus.spool) if self.bus.spool else None

    def tell(self, count: int) -> list[str]:
        """What was reported; what isn't in it was refused."""
        return [str(event.event_id) for _ in range(count) for event in self.bus.emit(Heartbeat())]

    def fill(self, left: int) -> None:
        self._disk.fill(left)

    def use_up_names(self) -> None:
        self._disk.use_up_names()

    def free(self) -> None:
        self._disk.free()

    def gate(self, is_open: bool) -> None:
        Gated.is_open = is_open

    def flush(self, timeout: float) -> bool:
        return self.bus.flush(timeout)

    def stop(self, timeout: float) -> bool:
        return self.bus.stop(timeout)

    def remove_spool(self) -> None:
        """By another name, since a cursor that is noted meanwhile would make a file in a directory that goes."""
        assert self.bus.spool is not None
        gone = self.bus.spool.with_name("gone")
        self.bus.spool.rename(gone)
        while gone.exists():  # a file that was being made as the name went
            shutil.rmtree(gone, ignore_errors=True)

    def forbid(self) -> None:
        """Nothing can be made in the spool any more; root may do what he wants until he gives that up."""
        assert self.bus.spool is not None
        for directory in (self.bus.spool, self.bus.spool / "cursors"):
            directory.chmod(0o500)

    def allow(self) -> None:
        assert self.bus.spool is not None
        for directory in (self.bus.spool, self.bus.spool / "cursors"):
            directory.chmod(0o700)

    def positions(self) -> dict[str, int]:
        from headwater.journal.files import OS_FILES
        from headwater.journal.position import committed_positions

        assert self.bus.spool is not None
        return committed_positions(OS_FILES, self.bus.spool)

    def names(self, where: str) -> list[str]:
        place = {"spools": self._spools, "shared": self._shared or self._spools}[where]
        return sorted(str(each.relative_to(place)) for each in place.rglob("*"))

    def dropped(self) -> dict[str, int]:
        return dict(self.bus.dropped())

    def arrived(self) -> list[str]:
        """In order, copies too, without what the bus reported itself."""
        return [str(record.event_id) for record in self._listener.records if record.kind != "Gap"]

    def gaps(self) -> list[dict[str, Any]]:
        emitted = {record.event_id: record.event for record in self._listener.records}
        gaps = [event for event in emitted.values() if isinstance(event, Gap)]
        return [json.loads(gap.model_dump_json(include={"reason", "missed", "detail", "sequence"})) for gap in gaps]

    def sequences(self) -> list[int]:
        return sorted({record.event_id.sequence for record in self._listener.records})

    def die(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


def give_up_override() -> None:
    """Without CAP_DAC_OVERRIDE root too needs a right to write; for all threads that are begun after this."""
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    data = (ctypes.c_uint32 * 6)()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.capget(header, data) == 0:
        data[0] &= ~(1 << _CAP_DAC_OVERRIDE)
        libc.capset(header, data)


def main(arguments: list[str]) -> None:
    disk, spools, shared = arguments
    give_up_override()
    victim = Victim(SmallDisk(Path(disk)), Path(spools), Path(shared) if shared else None)
    print("null", flush=True)
    for line in sys.stdin:
        method, *arguments = json.loads(line)
        print(json.dumps(getattr(victim, method)(*arguments)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
