"""What was refused under a lens, and what its user lets be."""

from __future__ import annotations

import threading
from collections.abc import Collection
from fnmatch import fnmatchcase
from typing import Final, NoReturn

from headwater.lens.model import LensError

_MOST: Final = 100


class Refusals:
    """The refusals of an application, from whichever thread. A script may catch the error and go on without it."""

    def __init__(self, lens: str, allowed: Collection[str]) -> None:
        self._lens = lens
        self._allowed = tuple(name.replace("[", "[[]").replace("?", "[?]") for name in allowed)
        self._messages: list[str] = []
        self._lock = threading.Lock()

    @property
    def messages(self) -> tuple[str, ...]:
        return tuple(self._messages)

    def refuse_unless_allowed(self, what: str, name: str) -> None:
        """Raise the error that says what isn't done, unless the lens allows it by this name."""
        if not any(fnmatchcase(name, pattern) for pattern in self._allowed):
            self._refuse(what, name)

    def _refuse(self, what: str, name: str) -> NoReturn:
        message = (
            f"the lens '{self._lens}' redirects writes, and {what}, which it can't redirect: do it outside of the "
            f"lens, or allow it by the name {name}"
        )
        with self._lock:
            if message not in self._messages and len(self._messages) < _MOST:
                self._messages.append(message)
        raise LensError(message)
