"""Exit codes, the same for every command: what a script can tell without reading a message."""

from __future__ import annotations

import enum

from headwater.errors import ConfigurationError, HeadwaterError, PluginError, TransientError


class Exit(enum.IntEnum):
    """The numbers of sysexits.h where it has one for the case."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    NOT_DRAINED = 3
    UNKNOWN = 4
    INPUT_GONE = 66
    JOB_FAILED = 70
    TRY_AGAIN = 75
    CONFIGURATION = 78
    INTERRUPTED = 130
    PIPE_CLOSED = 141


MEANINGS = {
    Exit.DONE: "done",
    Exit.FAILED: "failed, or you answered no; the same command fails again",
    Exit.USAGE: "the command was written wrongly",
    Exit.NOT_DRAINED: "a process was stopped and not done in time; the rest is read again next time",
    Exit.UNKNOWN: "what was asked can be answered neither by yes nor by no: what is known doesn't suffice",
    Exit.INPUT_GONE: "what has to be read as it was can't be, or isn't known; nothing was run",
    Exit.JOB_FAILED: "the job that was run failed, or its result can't be compared",
    Exit.TRY_AGAIN: "failed for now: something is away or busy; try again later",
    Exit.CONFIGURATION: "something in the configuration is wrong or missing, or nothing has the name that was given",
    Exit.INTERRUPTED: "interrupted by Ctrl-C",
    Exit.PIPE_CLOSED: "the reader of the output went away",
}
"""For every command but `headwater run SCRIPT`, which ends as the script ends, or with JOB_FAILED where a lens refused
something and the script ended well all the same."""


def exit_for(error: HeadwaterError) -> Exit:
    """Return the code that tells an error's kind."""
    if isinstance(error, (ConfigurationError, PluginError)):
        return Exit.CONFIGURATION
    return Exit.TRY_AGAIN if isinstance(error, TransientError) else Exit.FAILED
