"""What there is where a name isn't certain: an error for malformed input, and `Unknown` for what no input can tell."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.errors import TerminalError


class IdentityError(TerminalError):
    """Malformed or insufficient: the message says what, and what to give instead. It never holds a credential."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """No identity can be determined, and why. Recorded as an opaque input or output, never replaced by a guess."""

    reason: str
    query: bool = False
    """The place of a table holds a query: it reads some tables, but isn't one."""
