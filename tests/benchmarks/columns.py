"""How long the column lineage of large plans takes, beside reading their JSON."""

from __future__ import annotations

import sys
import time
from typing import Final

from headwater.listeners.capture.plan.columns import lineage_of
from headwater.listeners.capture.plan.tree import Plan
from tests.unit.plan.big import BIG

ROUNDS: Final = 5
MOST: Final = 300.0
"""Milliseconds of the processor, for each."""


def milliseconds(plan: Plan) -> float:
    def once() -> float:
        started = time.process_time()
        lineage_of(plan, plan.root)
        return time.process_time() - started

    return min(once() for _ in range(ROUNDS)) * 1e3


def main() -> int:
    print(f"{'plan':45}{'ms':>10}{'at most':>10}")
    found = {name: milliseconds(make()) for name, make in BIG.items()}
    for name, took in found.items():
        print(f"{name:45}{took:10.1f}{MOST:10.0f}")
    return int(any(took > MOST for took in found.values()))


if __name__ == "__main__":
    sys.exit(main())
