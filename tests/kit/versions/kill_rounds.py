"""Rounds in which a process of corrections kills itself, and the next one ends what it left."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Final

from headwater import local
from tests.kit.versions import correction_victim, switch_victim

SECONDS: Final = 900
VICTIMS: Final[dict[str, ModuleType]] = {"switch": switch_victim, "correction": correction_victim}


@dataclass
class KillRounds:
    """The rounds of one victim, whose tables are in a place of their own."""

    victim: ModuleType
    place: Path
    kills: Counter[str] = field(default_factory=Counter)
    ends: int = 0
    """How many processes came to their end before their kill."""

    def begin(self) -> None:
        self.victim.create_tables(self.place)

    def play(self, point: str, count: int) -> bool:
        """Return whether the process was killed. An AssertionError if it found anything wrong."""
        is_killed = self._run(point, count)
        self.kills[point] += is_killed
        self.ends += not is_killed
        return is_killed

    def end(self) -> None:
        """Have the last process end what is left, and play a round in which nobody is killed."""
        assert not self._run("none", 0)

    def _run(self, point: str, count: int) -> bool:
        command = [sys.executable, "-m", self.victim.__name__, str(self.place)]
        environment = {**os.environ, "JAVA_HOME": str(local.java().home), "SPARK_LOCAL_IP": "127.0.0.1"}
        log = self.place / "victim.log"
        with log.open("w") as output:
            process = subprocess.Popen(
                [*command, point, str(count)], env=environment, stdout=output, stderr=output, start_new_session=True
            )
        try:
            code = process.wait(SECONDS)
        except BaseException:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise
        assert code in {0, -signal.SIGKILL}, log.read_text()[-3000:]
        return code != 0


def chosen_points(points: Sequence[str], kills: int, chance: random.Random) -> list[tuple[str, int]]:
    """Return each point at its first arrival, in any order, and then again at its first or second."""
    first, later = [(point, 1) for point in points], [(points[at % len(points)], 1 + at % 2) for at in range(kills)]
    chance.shuffle(first)
    chance.shuffle(later)
    return [*first, *later][:kills]


def play_rounds(
    rounds: KillRounds, points: Sequence[tuple[str, int]], report: Callable[[str], None], may_go_on: Callable[[], bool]
) -> None:
    for point, count in points:
        if not may_go_on():
            break
        is_killed = rounds.play(point, count)
        report(f"{rounds.kills.total()} kills, {point}: {'killed' if is_killed else 'came to its end'}")
    rounds.end()
