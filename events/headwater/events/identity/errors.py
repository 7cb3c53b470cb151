"""The one error of identity: what was told can't be given a name that is certainly right."""

from __future__ import annotations

from headwater.errors import TerminalError


class IdentityError(TerminalError):
    """Malformed or insufficient: the message says what, and what to give instead. It never holds a credential."""
