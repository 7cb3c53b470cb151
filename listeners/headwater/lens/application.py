"""A lens for all sessions of an application, as `headwater run --pin` has it.

Keeps a program from changing the files of tables by itself, and from starting processes, which no lens is in.
"""

from __future__ import annotations

import inspect
import os
import sys
import threading
from collections.abc import Callable, Collection, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from headwater.lens.java_calls import JavaCallGuard
from headwater.lens.model import Lens, Refusals, TargetUse
from headwater.lens.session import ActiveLens

_HARMLESS_PROGRAMS: Final = frozenset({"uname", "ldconfig", "lscpu", "nproc", "getconf", "gcc", "cc", "objdump", "ld"})
"""What Python's own modules ask for facts about the machine."""
_HARMLESS_CALLERS: Final = frozenset({"pyspark.java_gateway", "platform", "ctypes.util"})
_BETWEEN: Final = frozenset({__name__, "subprocess", "os"})
_STARTS: Final = frozenset(
    {"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty"}
)
_WRITES: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CHANGES: Final = {
    **dict.fromkeys(("os.remove", "os.rmdir", "os.mkdir", "os.truncate", "shutil.rmtree"), (0,)),
    **dict.fromkeys(("os.rename", "os.link", "os.symlink", "shutil.move"), (0, 1)),
}
"""Which arguments of what changes files are paths."""


class ProcessGuard:
    """Sees what Python reports of itself. It can't be taken out of the interpreter, so that it is told when to stop."""

    def __init__(self, refusals: Refusals) -> None:
        self._refusals = refusals
        self._places: tuple[str, ...] = ()
        self._is_over = False

    def begin(self) -> None:
        """Look at what happens from now on."""
        sys.addaudithook(self._see)

    def protect(self, places: Collection[str]) -> None:
        """Have no file under these local directories changed by Python."""
        local = (Path(place.removeprefix("file://").removeprefix("file:")) for place in places if _is_local(place))
        found = {str(path) for place in local for path in (place.absolute(), place.resolve())}
        self._places = tuple(sorted({*found, *self._places} - {"/"}))

    def end(self) -> None:
        """Look at nothing any more."""
        self._is_over = True

    def _see(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self._is_over:
            return
        if event == "open":
            path, mode, flags = arguments
            if (isinstance(mode, str) and set(mode) & set("wax+")) or (mode is None and flags and flags & _WRITES):
                self._check_path(path)
        elif event in _CHANGES:
            for place in _CHANGES[event]:
                self._check_path(arguments[place])
        elif event in _STARTS:
            self._check_program(event, arguments)

    def _check_path(self, path: Any) -> None:
        if not self._places or isinstance(path, int):
            return
        try:
            full = os.path.abspath(os.fsdecode(path))  # noqa: PTH100 - links are followed by whoever opens it
        except (TypeError, ValueError):
            return
        for place in self._places:
            if full == place or full.startswith(place + "/"):
                self._refusals.refuse_unless_allowed(f"the job changes {full} by itself", full)

    def _check_program(self, event: str, arguments: tuple[Any, ...]) -> None:
        program = _program(event, arguments)
        caller = _calling_module()
        if program in _HARMLESS_PROGRAMS or caller in _HARMLESS_CALLERS or caller.partition(".")[0] == "headwater":
            return
        self._refusals.refuse_unless_allowed(f"the job starts the process {program}", f"process:{program}")


def _program(event: str, arguments: tuple[Any, ...]) -> str:
    if not arguments:
        return event.removeprefix("os.")
    first = arguments[0]
    if event == "subprocess.Popen":
        words = arguments[1]
        first = words if isinstance(words, (str, bytes, os.PathLike)) else words[0]
    text = os.fsdecode(first)
    return Path(text.split()[0]).name if text.split() else text


def _calling_module() -> str:
    """Return the name of the module that starts a process: the nearest one but those that do it for others."""
    frame: Any = inspect.currentframe()
    while frame is not None and str(frame.f_globals.get("__name__", "")) in _BETWEEN:
        frame = frame.f_back
    return "" if frame is None else str(frame.f_globals.get("__name__", ""))


def _is_local(place: str) -> bool:
    return place.startswith(("/", "file:")) or ":" not in place


def put_into_sessions(
    asked: Lens | Callable[[Any], Lens], *, name: str | None = None, allowed: Collection[str] = ()
) -> SessionLenses:
    """Have each SparkSession that Python makes from now on see through this lens, until that is ended.

    Sessions that share a state have one lens. Where a session can't have the lens, making it is an error: code that was
    to read pinned tables doesn't run without them. A function is called with the first session, before that has a lens,
    and returns the lens of all, which is called `name` and redirects writes; `allowed` is what it lets be.

    A lens that redirects writes also closes the ways around SQL that this process has.
    """
    if isinstance(asked, Lens):
        lenses = SessionLenses(asked, None if asked.allows_writes_elsewhere else Refusals(asked.name, asked.allowed))
    else:
        lenses = SessionLenses(asked, Refusals(name or "lens", allowed))
    lenses.begin()
    return lenses


class SessionLenses:
    """Made by `put_into_sessions`: the lenses of an application's sessions."""

    def __init__(self, asked: Lens | Callable[[Any], Lens], refusals: Refusals | None) -> None:
        self._asked = asked
        self._lens = asked if isinstance(asked, Lens) else None
        self._known: list[tuple[Any, ActiveLens]] = []
        self._is_over = False
        self._take_out: Callable[[], None] = lambda: None
        self._of_thread = threading.local()
        self._refusals = refusals
        self._calls = JavaCallGuard(refusals) if refusals else None
        self._process = ProcessGuard(refusals) if refusals else None

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
        for guard in (self._calls, self._process):
            if guard is not None:
                guard.begin()

    def uses(self) -> tuple[TargetUse, ...]:
        """Return what statements did with the tables that the lens redirects to: each effect once for each session."""
        return tuple(use for _, lens in self._known for use in lens.uses())

    def refusals(self) -> tuple[str, ...]:
        """Return what was refused to the application, in whichever way it tried it."""
        of_sessions = [message for _, lens in self._known for message in lens.refusals()]
        return tuple(dict.fromkeys([*of_sessions, *(self._refusals.messages if self._refusals else ())]))

    def close(self) -> None:
        """Have the application's sessions run nothing any more. Their lenses stay, and so do the ways that are closed.

        Streams are stopped, as they are when the process ends.
        """
        for session, _ in self._known:
            if not session.sparkContext().isStopped():
                for query in session.streams().active():
                    query.stop()
        for _, lens in self._known:
            lens.close()

    def end(self) -> None:
        """Leave sessions as they were, and put a lens into no other one."""
        self._is_over = True
        self._take_out()
        for guard in (self._calls, self._process):
            if guard is not None:
                guard.end()
        for session, lens in self._known:
            if not session.sparkContext().isStopped():
                lens.end()
        self._known.clear()

    @contextmanager
    def making(self, asked: Lens) -> Generator[None, None, None]:
        """Have the sessions that this thread makes within the block see through another lens."""
        self._of_thread.asked = asked
        try:
            yield
        finally:
            self._of_thread.asked = None

    def _begin_in(self, session: Any) -> None:
        if self._is_over or any(self._has(state, lens, session) for state, lens in self._known):
            return
        other: Lens | None = getattr(self._of_thread, "asked", None)
        if other is not None:
            self._put(session, other)
            return
        if self._lens is None:
            assert not isinstance(self._asked, Lens)  # noqa: S101 - else there is a lens
            self._lens = self._asked(session)
        self._put(session, self._lens)

    def _put(self, session: Any, asked: Lens) -> None:
        if self._process is not None:
            self._process.protect(_places_of_tables(session, asked))
        lens = ActiveLens(session, asked)
        lens.begin()
        self._known.append((session._jsparkSession, lens))

    @staticmethod
    def _has(known: Any, lens: ActiveLens, session: Any) -> bool:
        return bool(known.equals(session._jsparkSession)) or lens.is_in(session)


def _places_of_tables(session: Any, lens: Lens) -> list[str]:
    """Return where tables are: the warehouses of catalogs, and what the lens names by a path."""
    pairs = session._jsparkSession.sessionState().conf().getAllConfs().iterator()
    found = [place for place in (*lens.pins, *lens.redirects) if place.startswith(("/", "file:"))]
    while pairs.hasNext():
        pair = pairs.next()
        key = str(pair._1())
        if key == "spark.sql.warehouse.dir" or (key.startswith("spark.sql.catalog.") and key.endswith(".warehouse")):
            found.append(str(pair._2()))
    return found
