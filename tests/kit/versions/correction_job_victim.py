"""The process of a job on mirrors, which kills itself at the point that HEADWATER_TEST_KILL names."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from headwater.versions.correction.execution import job_driver


def kill_at(point: str) -> None:
    when, _, what = point.partition(" ")
    owner: Any = job_driver if what == "set back" else job_driver.RerunDriver
    name = "set_back" if what == "set back" else "_write"
    original = getattr(owner, name)

    def call(*args: Any) -> Any:
        if when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        found = original(*args)
        if when == "after":
            os.kill(os.getpid(), signal.SIGKILL)
        return found

    setattr(owner, name, call)


if __name__ == "__main__":
    if os.environ.get("HEADWATER_TEST_KILL"):
        kill_at(os.environ["HEADWATER_TEST_KILL"])
    job_driver.main(sys.argv[1:])
