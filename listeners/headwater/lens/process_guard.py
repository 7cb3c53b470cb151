"""Keeps a program from changing the files of tables by itself, and from starting processes, which no lens is in."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any, Final

from headwater.lens.refusals import Refusals

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
