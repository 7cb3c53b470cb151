"""Exit codes: what a script that calls `headwater` can tell without reading a message."""

from __future__ import annotations

import enum

from headwater.errors import ConfigurationError, HeadwaterError, PluginError, TransientError


class Exit(enum.IntEnum):
    """The numbers of sysexits.h where it has one for the case."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    NOT_DRAINED = 3
    TRY_AGAIN = 75
    CONFIGURATION = 78
    INTERRUPTED = 130
    PIPE_CLOSED = 141


MEANINGS = {
    Exit.DONE: "done",
    Exit.FAILED: "failed; trying the same again can't help",
    Exit.USAGE: "wrong usage",
    Exit.NOT_DRAINED: "told to stop, and not done in time; what wasn't done yet comes again",
    Exit.TRY_AGAIN: "failed for now; trying again later may help",
    Exit.CONFIGURATION: "something in the configuration is wrong",
    Exit.INTERRUPTED: "interrupted",
    Exit.PIPE_CLOSED: "the reader of the output went away",
}


def exit_for(error: HeadwaterError) -> Exit:
    """The code that tells an error's kind."""
    if isinstance(error, (ConfigurationError, PluginError)):
        return Exit.CONFIGURATION
    return Exit.TRY_AGAIN if isinstance(error, TransientError) else Exit.FAILED
