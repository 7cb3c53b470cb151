"""Words for a name that isn't there."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Final

_CLOSE: Final = 0.6


def unknown(what: str, given: str, known: Iterable[str]) -> str:
    """Words for a name that isn't there, with the nearest right one."""
    names = sorted(known)
    nearest = difflib.get_close_matches(given, names, n=1, cutoff=_CLOSE)
    if nearest:
        return f"there is no {what} {given}: did you mean {nearest[0]}?"
    return f"there is no {what} {given}: there is {', '.join(names) or 'none at all'}"
