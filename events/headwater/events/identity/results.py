"""The explicit other answer: not an error, but honestly no dataset that the strings name."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """No identity can be told, and why. Recorded as an opaque input or output, never replaced by a guess."""

    reason: str
    query: bool = False
    """The place of a table holds a query: it reads some tables, but isn't one."""
