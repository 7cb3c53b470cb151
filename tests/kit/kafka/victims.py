"""Drivers over a spool and Kafka as processes of their own, which a test kills or lets end."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.kit.kafka.ledger import SpooledEvent, read_ledger
from tests.kit.kafka.victim import Done, Orders
from tests.kit.waiting import PATIENCE, until

ROOT = Path(__file__).parents[3]


class Victim:
    """It runs from the beginning; whoever has made it ends it by `kill` or waits by `end`."""

    def __init__(
        self,
        directory: Path,
        conf: Mapping[str, str],
        *,
        seed: int,
        events: int,
        pause: float = 0.0,
        stop_within: float = 3.0,
    ) -> None:
        directory.mkdir(parents=True)
        self.directory = directory
        self.was_killed = False
        orders = Orders(str(directory), dict(conf), seed, events, pause, stop_within)
        self.stop_within = stop_within
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])}
        with (directory / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.kit.kafka.victim", str(orders.write())],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    @property
    def emitted(self) -> list[SpooledEvent]:
        """What it noted so far."""
        return read_ledger(self.directory / "told")

    @property
    def log(self) -> str:
        return (self.directory / "log").read_text(errors="replace")

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def wait_until_it_tells(self, count: int = 1) -> None:
        """Until so many events are noted, or it has ended."""
        until(
            lambda: not self.is_running or len(self.emitted) >= count,
            lambda: f"it told {len(self.emitted)} of {count} events\n{self.log}",
            PATIENCE,
        )

    def kill(self) -> None:
        """kill -9."""
        self.was_killed = self.was_killed or self.is_running
        self._process.kill()
        self._process.wait()

    def end(self) -> Done:
        """Wait until it has told everything and stopped."""
        try:
            self._process.wait(PATIENCE)
        finally:
            self.kill()
        assert self._process.returncode == 0, self.log
        return Done.read(self.directory)

    def set_full(self, *, is_full: bool) -> None:
        sign = self.directory / "full"
        if is_full:
            sign.touch()
        else:
            sign.unlink(missing_ok=True)

    def set_clock(self, seconds: int) -> None:
        fresh = self.directory / "clock.new"
        fresh.write_text(str(seconds))
        fresh.rename(self.directory / "clock")
