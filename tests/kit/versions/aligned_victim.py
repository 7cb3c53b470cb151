"""A driver with an aligned job, that kills itself and its JVM at a certain point of a barrier.

python -m tests.kit.versions.aligned_victim PLACE JOB POINT COUNT

POINT is one of `POINTS`, and COUNT says at which arrival there. Without a point (`none`) it runs to its end.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from headwater import local
from headwater.versions.aligned.checkpoints import Checkpoint
from headwater.versions.aligned.claims import GroupClaims
from headwater.versions.aligned.formats.delta import DeltaTable
from headwater.versions.aligned.formats.iceberg import IcebergTable
from tests.kit.versions.aligned import query_of, step_of, warehouse_session

_PLACES: Final[dict[str, tuple[type[Any], str]]] = {
    "claim": (GroupClaims, "claim"),
    "move": (GroupClaims, "move"),
    "checkpoint": (Checkpoint, "write"),
    "iceberg write": (IcebergTable, "write_marked"),
    "delta write": (DeltaTable, "write_marked"),
}
POINTS: Final = [f"{when} {what}" for what in _PLACES for when in ("before", "after")]
FIRST: Final = 1


def kill_at(point: str, count: int) -> None:
    """Let the process group end at this point, without a chance to do anything more."""
    when, _, what = point.partition(" ")
    owner, name = _PLACES[what]
    original: Callable[..., Any] = getattr(owner, name)
    arrivals = [0]

    def call(*args: Any, **kwargs: Any) -> Any:
        arrivals[0] += 1
        if when == "before" and arrivals[0] == count:
            os.killpg(0, signal.SIGKILL)
        found = original(*args, **kwargs)
        if when == "after" and arrivals[0] == count:
            os.killpg(0, signal.SIGKILL)
        return found

    setattr(owner, name, call)


def main(arguments: list[str]) -> None:
    place, job, point, count = arguments
    if point != "none":
        kill_at(point, int(count))
    with warehouse_session(local.java().home, Path(place)) as spark:
        print("READY", flush=True)
        print("DONE", query_of(spark, job, Path(place), FIRST).run(step_of(job)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
