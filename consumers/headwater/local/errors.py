"""What can go wrong when a real server is wanted on this machine."""

from __future__ import annotations

from headwater.errors import ConfigurationError, TerminalError, TransientError


class MissingRequirementError(TerminalError):
    """Something that must be installed first isn't there; the message names it."""


class FetchError(TransientError):
    """A download didn't come through; the message holds the end of what the tool said."""


class DamagedDownloadError(TerminalError):
    """What was downloaded isn't what the package expects, by name or SHA-256."""


class StartError(TerminalError):
    """A server ended or didn't answer in time; the message holds the end of its log."""


class PortTakenError(StartError):
    """Somebody else got the port between choosing and binding it."""


class NotOursError(TerminalError):
    """A server that somebody else runs can't be killed or restarted from here."""


class AddressError(ConfigurationError):
    """An address given by the environment has the wrong form, or nothing answers there."""
