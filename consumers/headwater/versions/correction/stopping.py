"""Production's jobs around a switch: they are stopped before it by the user's commands, or their end is waited for, and
streams are started after it.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Final

from headwater.errors import ConfigurationError
from headwater.lineage.store import Store
from headwater.versions.correction.model import CorrectionPlan
from headwater.versions.correction.rerun_commands import CHECKPOINT, RerunCommands
from headwater.versions.correction.switching import running_jobs

_POLL_SECONDS: Final = 1.0
_COMMAND_SECONDS: Final = 600.0


def stop_jobs(
    store: Store,
    plan: CorrectionPlan,
    commands: RerunCommands,
    *,
    seconds: float,
    report: Callable[[str], None],
    run: Callable[[str], None] | None = None,
) -> tuple[str, ...]:
    """Stop the jobs of a plan that the store knows to run, and wait until it knows their end. Return which ran. A
    ConfigurationError names those that still run when the time is over."""
    running = _running(store, plan)
    first = tuple(running)
    for job in running:
        known = commands.of(job)
        if known is not None and known.stop is not None:
            report(f"{job}: {known.stop}")
            (run or run_command)(known.stop)
    until, said = time.monotonic() + seconds, list[str]()
    while running := _running(store, plan):
        if time.monotonic() >= until:
            raise ConfigurationError(
                f"{', '.join(running)} run now, and may write what they read before the switch: stop them, or wait "
                f'until they have ended. [jobs."{running[0]}"] stop = "…" in correction.toml does it for you, '
                "--wait SECONDS waits longer, and with --anyway they are left to themselves"
            )
        if running != said:
            said = running
            report(f"waits for the end of {', '.join(running)}")
        time.sleep(min(_POLL_SECONDS, max(until - time.monotonic(), 0)))
    return first


def start_stream(commands: RerunCommands, job: str, checkpoint: str, report: Callable[[str], None]) -> None:
    """Start a stream with its checkpoint by the user's command, if there is one. A command that fails is reported: the
    switch is done, whether or not the stream runs."""
    known = commands.of(job)
    if known is None or known.start is None:
        return
    command = known.start.replace(CHECKPOINT, shlex.quote(checkpoint))
    report(f"{job}: {command}")
    try:
        run_command(command)
    except ConfigurationError as e:
        report(f"{e}. Start the stream yourself, with the checkpoint {checkpoint}")


def run_command(command: str) -> None:
    """Run a command of the user's to its end; what it prints goes to standard error. A ConfigurationError if it
    fails."""
    try:
        done = subprocess.run(  # noqa: S603 - the user's own, from his file
            shlex.split(command),
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr.fileno(),
            timeout=_COMMAND_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as e:
        raise ConfigurationError(f"the command {command} can't be run: {e}") from e
    if done.returncode:
        raise ConfigurationError(f"the command {command} ended with exit code {done.returncode}")


def _running(store: Store, plan: CorrectionPlan) -> list[str]:
    with store.engine.connect() as connection:
        return running_jobs(connection, plan)
