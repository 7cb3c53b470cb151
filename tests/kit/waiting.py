"""Waiting in tests for something that comes by itself: looked for again and again, and an AssertionError that says what
didn't come. No test sleeps for a time in which something should have happened.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import count
from typing import Final, TypeVar

T = TypeVar("T")
What = str | Callable[[], object]
PATIENCE: Final = 60.0
"""Seconds. What is right takes a fraction of it; a machine that has other things to do takes long."""


def until(holds: Callable[[], T], what: What = "it", seconds: float = PATIENCE, pause: float = 0.01) -> T:
    """Return what `holds` returns once that is true; `what` says what is waited for, at once or when it didn't come."""
    for _ in attempts(what, seconds, pause):
        if found := holds():
            return found
    raise AssertionError("attempts have an end")


def attempts(what: What, seconds: float = PATIENCE, pause: float = 0.01) -> Iterator[int]:
    """Yield the numbers of attempts, for a loop that leaves by itself when it has what it wants. There are two at
    least, for a machine that stood still in the first one."""
    deadline = time.monotonic() + seconds
    for number in count():
        if number > 1 and time.monotonic() > deadline:
            raise AssertionError(f"it didn't come in {seconds:g} s: {what if isinstance(what, str) else what()}")
        yield number
        time.sleep(pause)
