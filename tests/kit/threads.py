"""Work that several threads do at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


def in_threads(count: int, work: Callable[[int], object]) -> float:
    """Do work in so many threads, each with its number, and return how many seconds that took. What one of them raises
    is raised."""
    failures: list[BaseException] = []

    def run(number: int) -> None:
        try:
            work(number)
        except BaseException as e:  # noqa: BLE001 - raised below
            failures.append(e)

    began = time.monotonic()
    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return time.monotonic() - began
