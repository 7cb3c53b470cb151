"""A replay that kills itself at a step: python -m tests.kit.writers.replay_victim STORE LOG STEP.

A step is a function of the replay, and whether it dies before or after it.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from headwater.consumers.replay.filling import ReplaySettings
from headwater.consumers.replay.ranges import LogRange
from headwater.consumers.replay.replay import Replay
from headwater.lineage.store import StoreOptions

_REPLAY: Final = "headwater.consumers.replay.replay"
_REPLACEMENT: Final = "headwater.lineage.replacement"
STEPS: Final = {
    "fresh tables": (_REPLAY, "create_area"),
    "sources": ("headwater.consumers.replay.preparation", "check_same_sources"),
    "a batch": ("headwater.consumers.writer.store_pipeline", "StorePipeline.store"),
    "view indexes": (_REPLAY, "make_view_indexes"),
    "fence": (_REPLAY, "Replay._switch_behind"),
    "rename": (f"{_REPLACEMENT}.{{database}}", "{Database}Fence.switch"),
    "records of the writer": (f"{_REPLACEMENT}.{{database}}", "take_over"),
}
"""By what they are called: the module and the function."""
FENCES: Final = {"sqlite": "SQLite", "postgresql": "Postgres", "mariadb": "MariaDB"}


def die(*_: Any, **__: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def kill_at(step: str, when: str, database: str) -> None:
    """Replace the function of a step by one that dies."""
    module, place = STEPS[step]
    owner: Any = import_module(module.format(database=database))
    *parents, name = place.format(Database=FENCES[database]).split(".")
    for each in parents:
        owner = getattr(owner, each)
    real: Callable[..., Any] = getattr(owner, name)

    def deadly(*given: Any, **more: Any) -> Any:
        if when == "after":
            real(*given, **more)
        die()

    setattr(owner, name, deadly)


def main(url: str, log: str, step: str, when: str, database: str) -> None:
    options = StoreOptions.at(url)
    kill_at(step, when, database)
    settings = ReplaySettings(group="g", batch=40)
    source = LogRange(f"log:{log}", Path(log), dict)
    Replay(options, [source], settings, lambda _: None).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
