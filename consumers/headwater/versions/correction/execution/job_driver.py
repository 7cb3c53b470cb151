"""A job's own process on the mirrors: `python -m headwater.versions.correction.execution.job_driver REQUEST PIPE`.

With the first SparkSession of the job, before the job gets it, the mirrors that it writes are set back to where they
began; then the lens is put in, and stays until the process is gone. How the job ended is the last thing that is
written. PIPE is a file descriptor, whose other end the corrector holds: when that is closed, the process ends at once.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Sequence
from functools import wraps
from pathlib import Path
from threading import Thread
from typing import Any, Final

from headwater.errors import HeadwaterError
from headwater.lens import Lens, SessionLenses, put_into_sessions, refuse_remote_sessions
from headwater.listeners.installation import script
from headwater.versions.aligned.query import AlignedQuery
from headwater.versions.branches.format_branches import branches_of
from headwater.versions.correction.execution.aligned_reruns import MirroredJobs
from headwater.versions.correction.execution.redirects import lens_of, marks_of
from headwater.versions.correction.execution.reruns import RerunOutcome, RerunRequest, dump_outcome, load_request
from headwater.versions.correction.execution.tables import Mirror
from headwater.versions.validation.driver import end_threads, exit_code_of
from headwater.versions.validation.results import full_name

_REFUSED: Final = 3
"""The exit code of a job that was stopped before it saw a table. The parent reads the outcome, not this."""
_SHOWN: Final = 5


class RerunDriver:
    """Runs one command of a job."""

    def __init__(self, request: RerunRequest) -> None:
        self._request = request
        self._problems: list[str] = []
        self._lenses: SessionLenses | None = None
        self._has_session = False
        self._code: int | None = None

    def run(self) -> None:
        """Run the job. The outcome is written when the interpreter ends, behind the job's own exit handlers."""
        atexit.register(self._write)  # the first handler is the last that runs
        refuse_remote_sessions("headwater correct run")
        name = f"correct {self._request.correction}"
        AlignedQuery.stand_in = MirroredJobs(self._request.correction)
        self._lenses = put_into_sessions(self._prepare, name=name, allowed=self._request.allowed)
        code = self._run_job()
        end_threads()
        self._lenses.close()
        self._code = code

    def _run_job(self) -> int:
        """Return the exit code that the job would have had as a process."""
        try:
            program, rest = script.parse_command(self._request.command)
        except HeadwaterError as e:
            self._problems.append(str(e))
            return _REFUSED
        if self._request.checkpoints:
            end_streams_by_themselves()
        marks = marks_of(self._request.correction)
        try:
            script.run(program, rest, {**self._request.configuration, **marks})
        except SystemExit as e:
            return exit_code_of(e)

    def _prepare(self, session: Any) -> Lens:
        """Called with the job's first session, before that has a lens."""
        self._has_session = True
        try:
            for mirror in self._request.mirrors:
                if mirror.table in self._request.resets:
                    set_back(session, mirror)
        except Exception as e:  # each format and release has errors of its own
            self._problems.append(f"its mirrors can't be set back to where they began: {type(e).__name__}: {e}")
            session.stop()
            raise SystemExit(_REFUSED) from e
        mirrors = {mirror.table: mirror for mirror in self._request.mirrors}
        return lens_of(self._request.correction, mirrors, self._request.allowed, self._request.checkpoints)

    def _write(self) -> None:
        if self._code is None:
            return
        problems = [*self._problems, *self._refusals()]
        if not self._has_session and not problems:
            problems.append("it made no SparkSession in its own process, so it wrote no mirror")
        place = Path(self._request.outcome_file)
        new = place.with_suffix(".new")
        new.write_bytes(dump_outcome(RerunOutcome(exit_code=self._code, problems=tuple(problems))))
        new.replace(place)

    def _refusals(self) -> list[str]:
        """Return what was refused to the job, whether or not it went on: it did less than it does in production."""
        assert self._lenses is not None  # noqa: S101 - made before the job runs
        try:
            found = self._lenses.refusals()
        except Exception as e:  # noqa: BLE001 - the job ended the JVM
            return [f"what was refused to it isn't known ({type(e).__name__})"]
        more = [f"{len(found) - _SHOWN} more"] if len(found) > _SHOWN else []
        return [*found[:_SHOWN], *more]


def end_streams_by_themselves() -> None:
    """Have each stream that Python starts from now on end when it has read all that there is, whatever trigger it asks
    for."""
    from pyspark.sql.streaming.readwriter import DataStreamWriter  # noqa: PLC0415 - the job's own pyspark

    writer: Any = DataStreamWriter
    for name in ("start", "toTable"):
        setattr(writer, name, _with_an_end(getattr(writer, name)))


def _with_an_end(start: Any) -> Any:
    @wraps(start)
    def run(writer: Any, *args: Any, **kwargs: Any) -> Any:
        return start(writer.trigger(availableNow=True), *args, **kwargs)

    return run


def set_back(spark: Any, mirror: Mirror) -> None:
    """Let a mirror have the rows again that it began with."""
    formats = branches_of(spark, full_name(mirror.table))
    there = next((each for each in formats.branches() if each.name.lower() == mirror.branch.lower()), None)
    if there is None:
        raise LookupError(f"{mirror.table} has no branch {mirror.branch} any more")
    formats.reset(there, mirror.begins_at)


def end_with_corrector(pipe: int) -> None:
    """End this process as soon as the other end of a pipe is closed, with its JVM first: that still commits else."""

    def wait() -> None:
        os.read(pipe, 1)
        context: Any = getattr(sys.modules.get("pyspark"), "SparkContext", None)
        java = getattr(getattr(context, "_gateway", None), "proc", None)
        if java is not None:
            java.kill()
        os._exit(_REFUSED)

    Thread(target=wait, name="headwater-corrector-watch", daemon=True).start()


def main(arguments: Sequence[str]) -> None:
    end_with_corrector(int(arguments[1]))
    RerunDriver(load_request(Path(arguments[0]).read_bytes())).run()


if __name__ == "__main__":
    # By its name: Java that `__main__` calls is the job's.
    from headwater.versions.correction.execution import job_driver

    job_driver.main(sys.argv[1:])
