"""A lens for all sessions of an application, as `headwater run --pin` has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headwater.lens.model import Lens
from headwater.lens.session import ActiveLens


def put_into_sessions(asked: Lens) -> None:
    """Have each SparkSession that Python makes from now on see through this lens, until the process ends.

    Sessions that share a state have one lens. Where a session can't have the lens, making it is an error: code that was
    to read pinned tables doesn't run without them.
    """
    from pyspark.sql import SparkSession  # noqa: PLC0415 - the program's own pyspark, when it has loaded it

    session_class: Any = SparkSession
    original: Callable[..., None] = session_class.__init__
    known: list[tuple[Any, ActiveLens]] = []

    def begin(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        if any(each.equals(self._jsparkSession) for each, _ in known):
            return
        lens = ActiveLens(self, asked)
        lens.begin()
        known.append((self._jsparkSession, lens))

    begin.__wrapped__ = original  # type: ignore[attr-defined]
    session_class.__init__ = begin
