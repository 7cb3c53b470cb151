"""`headwater dev down`: stops what `headwater dev up` left running."""

from __future__ import annotations

import signal
from argparse import Namespace
from typing import Final

from headwater.cli.commands import command
from headwater.cli.dev.home import Home, add_home
from headwater.cli.erasing import add_erasing, erase
from headwater.cli.exits import Exit
from headwater.cli.flags import Flags
from headwater.cli.output import CommandOutput
from headwater.errors import TransientError

_PATIENCE: Final = 90.0
"""A writer stores the events it holds, and databases close their files."""
_ORPHAN_SECONDS: Final = 20.0


def _purge(parser: Flags) -> None:
    parser.switch("purge", "remove what they have too: events, lineage, logs")


@command(
    """Stop broker, database and writer that `headwater dev up` started on this machine.

What they have stays, and is there again at the next `headwater dev up`. With --purge it is removed too, if you
agree.""",
    "headwater dev down",
    "headwater dev down --purge --dry-run",
    "headwater dev down --purge --yes",
    flags=[add_home, _purge, add_erasing],
)
def down(given: Namespace, output: CommandOutput) -> int:
    home = Home.of(given.home)
    if not given.purge:
        return _stop(home, output, is_dry=given.dry_run)
    paths = home.ours() if home.path.exists() else []
    output.table("to remove", ("path",), [(path,) for path in paths], "To be removed, after all is stopped")
    question = f"Events, lineage and logs in {home.path} will be gone: remove them?"

    def work() -> tuple[str, dict[str, object]]:
        _stop(home, output, is_dry=False)
        if home.path.exists():
            _remove(home)
        return f"{home.path} is removed", {"removed": home.path}

    return erase(given, output, question, work)


def _stop(home: Home, output: CommandOutput, *, is_dry: bool) -> Exit:
    if is_dry:
        output.outcome("nothing was done: this was a dry run", {"done": False, "dry_run": True})
        return Exit.DONE
    is_stopped = home.path.exists() and _stop_servers(home)
    output.outcome(
        "stopped" if is_stopped else f"nothing runs in {home.path}", {"home": home.path, "stopped": is_stopped}
    )
    return Exit.DONE


def _stop_servers(home: Home) -> bool:
    """Return whether there was something to stop."""
    state = home.state()
    if state is None:
        return False
    supervisor, is_stopped = state.supervisor_identity, False
    if supervisor is not None and supervisor.send(signal.SIGTERM):
        if not supervisor.wait(_PATIENCE):
            raise TransientError(f"process {supervisor.pid} doesn't end: look into {home.log}, or end it by hand")
        is_stopped = True
        state = home.state() or state
    for _, process, gentle in state.orphans():  # their supervisor was killed
        process.terminate(signal.Signals(gentle), _ORPHAN_SECONDS)
        is_stopped = True
    return is_stopped


def _remove(home: Home) -> None:
    with home.hold_lock() as is_ours:
        if not is_ours:
            raise TransientError(f"somebody starts in {home.path} just now: nothing is removed")
        home.purge()
