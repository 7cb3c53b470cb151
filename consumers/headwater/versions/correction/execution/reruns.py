"""A job's processes on the mirrors: each runs one command of its, as `headwater run` runs a script.

A job's process ends when that of its corrector is gone, or when another one has taken the correction over: that one
runs the job anew, and both would write the same mirrors.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from pydantic import TypeAdapter

from headwater.versions.correction.execution.tables import CorrectionError, Mirror

_DRIVER: Final = "headwater.versions.correction.execution.job_driver"
_SECONDS_TO_END: Final = 60.0
_LOOK_EVERY_SECONDS: Final = 1.0


@dataclass(frozen=True, kw_only=True)
class RerunRequest:
    """What a job's process is told."""

    correction: str
    command: tuple[str, ...]
    mirrors: tuple[Mirror, ...]
    """All of the correction: their tables' names lead to them."""
    resets: tuple[str, ...]
    """The tables whose mirrors are set back to where they began, before the job sees them."""
    allowed: tuple[str, ...]
    checkpoints: Mapping[str, str] = field(default_factory=dict)
    """Of streams: production's, each with its fork for the mirrors. A stream with one ends when it has read all."""
    configuration: Mapping[str, str]
    outcome_file: str


@dataclass(frozen=True, kw_only=True)
class RerunOutcome:
    """What became of a job."""

    exit_code: int
    problems: tuple[str, ...] = ()
    """Why it can't be taken for done, whatever its exit code."""


class CommandRunner(Protocol):
    """What `JobRunner.run` is."""

    def __call__(
        self,
        correction: str,
        job: str,
        command: str,
        mirrors: Sequence[Mirror],
        resets: Sequence[str],
        /,
        *,
        checkpoints: Mapping[str, str],
        should_continue: Callable[[], bool],
    ) -> None: ...


@dataclass(frozen=True, kw_only=True)
class JobRunner:
    """Runs commands in processes of their own."""

    configuration: Mapping[str, str] = field(default_factory=dict)
    """Spark properties, as spark-submit's --conf."""
    allowed: tuple[str, ...] = ()
    """Tables and paths that jobs may write although they aren't of the chain."""

    def run(
        self,
        correction: str,
        job: str,
        command: str,
        mirrors: Sequence[Mirror],
        resets: Sequence[str],
        *,
        checkpoints: Mapping[str, str],
        should_continue: Callable[[], bool] = lambda: True,
    ) -> None:
        """Run a command of a job. What it prints goes to standard error. A CorrectionError says why it isn't done: also
        if it was ended because it shouldn't continue."""
        with tempfile.TemporaryDirectory(prefix="headwater-correct-") as folder:
            request = RerunRequest(
                correction=correction,
                command=tuple(shlex.split(command)),
                mirrors=tuple(mirrors),
                resets=tuple(resets),
                allowed=self.allowed,
                checkpoints=checkpoints,
                configuration=self.configuration,
                outcome_file=str(Path(folder) / "outcome.json"),
            )
            file = Path(folder) / "request.json"
            file.write_bytes(dump_request(request))
            code = _run_process([sys.executable, "-m", _DRIVER, str(file)], should_continue)
            outcome_file = Path(request.outcome_file)
            if outcome_file.exists():
                outcome = load_outcome(outcome_file.read_bytes())
            else:
                outcome = RerunOutcome(exit_code=code, problems=("its process ended before it was through",))
        if outcome.problems or outcome.exit_code:
            raise CorrectionError(_failure(correction, job, command, outcome))


_REQUEST: Final[TypeAdapter[RerunRequest]] = TypeAdapter(RerunRequest)
_OUTCOME: Final[TypeAdapter[RerunOutcome]] = TypeAdapter(RerunOutcome)


def dump_request(request: RerunRequest) -> bytes:
    return _REQUEST.dump_json(request)


def load_request(data: bytes) -> RerunRequest:
    return _REQUEST.validate_json(data)


def dump_outcome(outcome: RerunOutcome) -> bytes:
    return _OUTCOME.dump_json(outcome)


def load_outcome(data: bytes) -> RerunOutcome:
    return _OUTCOME.validate_json(data)


def _failure(correction: str, job: str, command: str, outcome: RerunOutcome) -> str:
    ended = f"ended with exit code {outcome.exit_code}" if outcome.exit_code else "isn't done"
    lines = "".join(f"\n  - {problem}" for problem in outcome.problems)
    return (
        f"the job {job} {ended} on the mirrors ({command}){lines}\nProduction wasn't touched. Mend what is wrong, and "
        f"go on there: `headwater correct run {correction}`"
    )


def _run_process(command: Sequence[str], should_continue: Callable[[], bool]) -> int:
    """Run a job's process. It reads a pipe whose other end is here alone, and ends at once when that is closed."""
    given, held = os.pipe()
    started = [*command, str(given)]
    with (
        os.fdopen(held, "wb") as own_end,
        subprocess.Popen(started, stdin=subprocess.DEVNULL, stdout=sys.stderr.fileno(), pass_fds=[given]) as process,  # noqa: S603
    ):
        os.close(given)
        try:
            while (code := _wait(process)) is None:
                if not should_continue():
                    own_end.close()
                    return process.wait()
        except BaseException:
            process.terminate()
            try:
                process.wait(_SECONDS_TO_END)
            except subprocess.TimeoutExpired:
                process.kill()
            raise
    return code


def _wait(process: subprocess.Popen[bytes]) -> int | None:
    try:
        return process.wait(_LOOK_EVERY_SECONDS)
    except subprocess.TimeoutExpired:
        return None
