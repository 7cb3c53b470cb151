"""`headwater down`: stops what `headwater up` left running."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from typing import Final

from headwater.cli.exits import Exit
from headwater.cli.flags import Flags
from headwater.cli.output import Output
from headwater.cli.whole.home import Home, add_home
from headwater.errors import TransientError

_PATIENCE: Final = 90.0
"""A writer stores what it has in its hands, and databases close their files."""
_LEFT_SECONDS: Final = 20.0


def main(arguments: Sequence[str], output: Output) -> int:
    """Stop broker, database and writer that `headwater up` started on this machine. What they have stays, and is there
    again at the next `headwater up`."""
    parser = Flags("headwater down", str(main.__doc__))
    add_home(parser)
    parser.switch("purge", "remove what they have too: events, lineage, logs")
    given = parser.parse_args(arguments)
    home = Home.of(given.home)
    if not home.path.exists():
        output.note(f"nothing runs in {home.path}")
        return Exit.DONE
    stopped = _stopped(home)
    output.note("stopped" if stopped else f"nothing runs in {home.path}")
    if given.purge:
        _purge(home)
        output.note(f"{home.path} is removed")
    return Exit.DONE


def _stopped(home: Home) -> bool:
    """Whether there was something to stop."""
    state = home.state()
    if state is None:
        return False
    keeper, is_stopped = state.keeper_identity, False
    if keeper is not None and keeper.send(signal.SIGTERM):
        if not keeper.wait(_PATIENCE):
            raise TransientError(f"process {keeper.pid} doesn't end: look into {home.log}, or end it by hand")
        is_stopped = True
        state = home.state() or state
    for _, process, gentle in state.left():  # its keeper was killed
        process.end(signal.Signals(gentle), _LEFT_SECONDS)
        is_stopped = True
    return is_stopped


def _purge(home: Home) -> None:
    with home.held() as is_ours:
        if not is_ours:
            raise TransientError(f"somebody starts in {home.path} just now: nothing is removed")
        home.purge()
