"""`python -m tests.benchmarks.correction_rounds --kills 200`: kills corrections, roll-backs and switches at all points.

Each process ends what the one before it left, looks whether the tables are as if nobody had been killed, begins anew,
and is killed. A quarter of the kills are within switches of tables of two formats.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from functools import partial
from pathlib import Path
from types import ModuleType

from tests.kit.seeds import seed
from tests.kit.versions.kill_rounds import VICTIMS, KillRounds, chosen_points, play_rounds


def play(victim: ModuleType, kills: int, chance: random.Random, until: float) -> KillRounds:
    """Play the rounds of one victim. None begins after a time."""
    with tempfile.TemporaryDirectory() as directory:
        rounds = KillRounds(victim, Path(directory))
        rounds.begin()
        points = chosen_points(victim.POINTS, kills, chance)
        play_rounds(rounds, points, partial(print, flush=True), lambda: time.monotonic() < until)
        return rounds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--minutes", type=float, default=600, help="no kill begins later")
    given = parser.parse_args()
    chance, began = random.Random(seed()), time.monotonic()
    found = list[tuple[str, KillRounds]]()
    shares = {"switch": given.kills // 4, "correction": given.kills - given.kills // 4}
    for number, (name, victim) in enumerate(VICTIMS.items(), 1):
        until = began + given.minutes * 60 * number / len(VICTIMS)
        found.append((name, play(victim, shares[name], chance, until)))
    kills = sum(rounds.kills.total() for _, rounds in found)
    print(f"{kills} kills in {time.monotonic() - began:.0f} s; after each the tables were as if there had been none")
    for name, rounds in found:
        print(f"{name}: {rounds.kills.total()} kills, {rounds.ends} processes came to their end before their kill")
        for point, count in sorted(rounds.kills.items()):
            print(f"  {point:32} {count}")
        if unhit := sorted({*VICTIMS[name].POINTS} - {point for point, count in rounds.kills.items() if count}):
            print(f"  never: {', '.join(unhit)}")


if __name__ == "__main__":
    main()
