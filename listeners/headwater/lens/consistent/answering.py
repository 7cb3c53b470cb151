"""Threads that answer what statements ask: which versions of their tables belong together.

The thread of the JVM that analyses a statement puts its question into a queue, and waits for so long at most. These
threads come for the questions, as clients of the JVM, and nothing calls back into Python. So it doesn't matter what the
program's own threads do, or whether a statement comes from Python at all.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from typing import Any, Final

from headwater.errors import PluginError
from headwater.lens.consistent.port import FoundVersions, PinnedVersion, VersionFinder

_LOG = logging.getLogger(__name__)
_THREADS: Final = 4
"""As many questions are answered at a time. One that the store leaves unanswered doesn't hold up the next ones."""
_TAKE_MILLIS: Final = 5_000
_FAILURES: Final = 3
_PAUSE_SECONDS: Final = 0.2


class Answering:
    """From `start` to `close`. The finder is made by the first question, since most applications ask none."""

    def __init__(self, reads: Any, make_finder: Callable[[], VersionFinder]) -> None:
        """`reads` is the Java object that has the questions."""
        self._reads = reads
        self._make_finder = make_finder
        self._lock = threading.Lock()
        self._finder: VersionFinder | None = None
        self._stopped = threading.Event()

    def start(self) -> None:
        for number in range(_THREADS):
            threading.Thread(target=self._run, name=f"headwater-consistent-{number}", daemon=True).start()

    def close(self) -> None:
        """Answer nothing any more. Waits for nobody."""
        self._stopped.set()
        with self._lock:
            finder, self._finder = self._finder, None
        if finder is not None:
            finder.close()

    def answer(self, tables: Iterable[str]) -> str:
        """Return the answer as the Java side reads it. Whatever goes wrong is the answer."""
        try:
            found = self._opened().find(tuple(tables))
        except Exception as e:  # noqa: BLE001 - the statement goes on with what its session says
            _LOG.debug("no versions were found", exc_info=True)
            found = FoundVersions(reasons=(f"{e}" if isinstance(e, PluginError) else _words(e),))
        return to_lines(found)

    def _opened(self) -> VersionFinder:
        with self._lock:
            if self._finder is None:
                self._finder = self._make_finder()
            return self._finder

    def _run(self) -> None:
        failures = 0
        while not self._stopped.is_set() and failures < _FAILURES:
            failures = 0 if self._answer_next() else failures + 1

    def _answer_next(self) -> bool:
        """Answer a question, if one comes soon. Returns whether the JVM is there."""
        try:
            question = self._reads.take(_TAKE_MILLIS)
            if question is not None and not self._stopped.is_set():
                number, *tables = str(question).split("\n")
                self._reads.answer(number, self.answer(tables))
        except Exception as e:  # noqa: BLE001 - the JVM may be gone, in whatever way py4j says that
            _LOG.debug("the driver's JVM doesn't answer: %s", e)
            self._stopped.wait(_PAUSE_SECONDS)
            return False
        return True


def to_lines(found: FoundVersions) -> str:
    """Return what was found as lines of words with tabs between them."""
    lines = [_pin_words(pin) for pin in found.pins]
    lines += [("why", reason) for reason in found.reasons]
    lines += [("note", note) for note in found.notes]
    if found.cut:
        lines.append(("cut", ", ".join(found.cut)))
    return "\n".join("\t".join(_one_line(word) for word in line) for line in lines)


def _pin_words(pin: PinnedVersion) -> tuple[str, ...]:
    made_at = -1 if pin.made_at is None else pin.made_at
    return ("pin", pin.name, pin.version, pin.generation or "", str(made_at), str(pin.steps_behind))


def _one_line(text: str) -> str:
    return " ".join(text.split()) if any(character in text for character in "\t\n\r") else text


def _words(error: Exception) -> str:
    text = _one_line(str(error)).rstrip(".")
    return text or type(error).__name__
