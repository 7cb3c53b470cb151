"""`headwater forward run` as a process of its own, that tests stop and kill, and what arrived at its targets."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from typing_extensions import Self

from headwater.forwarders.status import ForwarderStatus, read_status
from tests.kit.waiting import attempts

RECORDER: Final = "tests.kit.forwarders.targets:Recorder"
ROOT: Final = Path(__file__).parents[3]
_SECONDS: Final = 60.0


class ForwardProcess:
    """One process with forwarders. It is killed when its `with` block ends."""

    def __init__(
        self, bus: str, state: Path, forwarders: Mapping[str, Mapping[str, str]], *flags: str, log: Path | None = None
    ) -> None:
        options = [f"{name}.{key}={value}" for name, keys in forwarders.items() for key, value in keys.items()]
        command = [sys.executable, "-m", "headwater.cli", "forward", "run", *forwarders, "--bus", bus]
        command += ["--state", str(state), *flags]
        environment = {**os.environ, "HEADWATER_FORWARD_OPTIONS": "\n".join(options), "PYTHONPATH": str(ROOT)}
        self._state = state
        self._log = (log or state.with_suffix(".log")).open("ab")
        self.process = subprocess.Popen(command, env=environment, stdout=self._log, stderr=self._log)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._log.close()

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> int:
        """Ask it to end, and return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(_SECONDS)

    def wait(self, seconds: float = _SECONDS) -> int:
        return self.process.wait(seconds)

    def status(self, name: str) -> ForwarderStatus:
        return read_status(self._state, name)

    def await_status(self, name: str, state: str) -> ForwarderStatus:
        """Wait until the forwarder is in this state, as its process says."""
        for _ in attempts(f"{name} to be {state}", _SECONDS):
            assert self.process.poll() is None, f"it ended: {self._log.name}"
            if (self._state / f"{name}.json").exists() and (found := self.status(name)).state == state:
                return found
        raise AssertionError


class Arrival:
    """What arrived, at one or several targets of the same events, by the time at which it came there."""

    def __init__(self, files: Iterable[Path]) -> None:
        lines = [line.split() for each in files if each.exists() for line in each.read_text("utf-8").splitlines()]
        self.lines: Final = sorted((line for line in lines if len(line) == 4), key=lambda line: int(line[3]))

    @property
    def ids(self) -> list[str]:
        """The events in the order of their first copy."""
        return list(dict.fromkeys(line[0] for line in self.lines))

    @property
    def copies(self) -> int:
        return len(self.lines) - len(self.ids)

    def by_key(self) -> dict[str, list[str]]:
        """The events of each key in the order of their first copy."""
        found: dict[str, dict[str, None]] = defaultdict(dict)
        for event, _, key, _ in self.lines:
            found[key].setdefault(event)
        return {key: list(events) for key, events in found.items()}
