"""A lens for all sessions of an application, as `headwater run --pin` has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headwater.lens.model import Lens
from headwater.lens.session import ActiveLens


def put_into_sessions(asked: Lens | Callable[[Any], Lens]) -> Callable[[], None]:
    """Have each SparkSession that Python makes from now on see through this lens, until what is returned is called.

    Sessions that share a state have one lens. Where a session can't have the lens, making it is an error: code that was
    to read pinned tables doesn't run without them. A function is called with the first session, before that has a lens,
    and returns the lens of all.
    """
    from pyspark.sql import SparkSession  # noqa: PLC0415 - the program's own pyspark, when it has loaded it

    session_class: Any = SparkSession
    original: Callable[..., None] = session_class.__init__
    known: list[tuple[Any, ActiveLens]] = []
    made: list[Lens] = [asked] if isinstance(asked, Lens) else []
    is_over = False

    def begin(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        if is_over or any(each.equals(self._jsparkSession) for each, _ in known):
            return
        if not made and not isinstance(asked, Lens):
            made.append(asked(self))
        lens = ActiveLens(self, made[0])
        lens.begin()
        known.append((self._jsparkSession, lens))

    def end() -> None:
        nonlocal is_over
        is_over = True
        if session_class.__init__ is begin:
            session_class.__init__ = original
        for session, lens in known:
            if not session.sparkContext().isStopped():
                lens.end()
        known.clear()

    begin.__wrapped__ = original  # type: ignore[attr-defined]
    session_class.__init__ = begin
    return end
