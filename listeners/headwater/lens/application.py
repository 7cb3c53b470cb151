"""A lens for all sessions of an application, as `headwater run --pin` has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headwater.lens.model import Lens, TargetUse
from headwater.lens.session import ActiveLens


def put_into_sessions(asked: Lens | Callable[[Any], Lens]) -> SessionLenses:
    """Have each SparkSession that Python makes from now on see through this lens, until that is ended.

    Sessions that share a state have one lens. Where a session can't have the lens, making it is an error: code that was
    to read pinned tables doesn't run without them. A function is called with the first session, before that has a lens,
    and returns the lens of all.
    """
    lenses = SessionLenses(asked)
    lenses.begin()
    return lenses


class SessionLenses:
    """Made by `put_into_sessions`: the lenses of an application's sessions."""

    def __init__(self, asked: Lens | Callable[[Any], Lens]) -> None:
        self._asked = asked
        self._lens = asked if isinstance(asked, Lens) else None
        self._known: list[tuple[Any, ActiveLens]] = []
        self._is_over = False
        self._take_out: Callable[[], None] = lambda: None

    def begin(self) -> None:
        """Put a lens into sessions as they are made."""
        from pyspark.sql import SparkSession  # noqa: PLC0415 - the program's own pyspark, when it has loaded it

        session_class: Any = SparkSession
        original: Callable[..., None] = session_class.__init__

        def begin(session: Any, *args: Any, **kwargs: Any) -> None:
            original(session, *args, **kwargs)
            self._begin_in(session)

        def take_out() -> None:
            if session_class.__init__ is begin:
                session_class.__init__ = original

        begin.__wrapped__ = original  # type: ignore[attr-defined]
        session_class.__init__ = begin
        self._take_out = take_out

    def uses(self) -> tuple[TargetUse, ...]:
        """Return what statements did with the tables that the lens redirects to: each effect once for each session."""
        return tuple(use for _, lens in self._known for use in lens.uses())

    def end(self) -> None:
        """Leave sessions as they were, and put a lens into no other one."""
        self._is_over = True
        self._take_out()
        for session, lens in self._known:
            if not session.sparkContext().isStopped():
                lens.end()
        self._known.clear()

    def _begin_in(self, session: Any) -> None:
        if self._is_over or any(each.equals(session._jsparkSession) for each, _ in self._known):
            return
        if self._lens is None:
            assert not isinstance(self._asked, Lens)  # noqa: S101 - else there is a lens
            self._lens = self._asked(session)
        lens = ActiveLens(session, self._lens)
        lens.begin()
        self._known.append((session._jsparkSession, lens))
