"""The job's own process: `python -m headwater.versions.validation.driver REQUEST`.

With the first SparkSession of the job, before the job gets it, the pinned snapshots are looked at and the result
tables made; then the lens is put in, and stays until the process is gone. When the job has ended well, with its
threads, its result is compared. What came out is written to the file that the request names, and nothing else tells the
parent: that is the last thing that the interpreter does, because exit handlers of the job may still try something.
"""

from __future__ import annotations

import atexit
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from headwater.errors import HeadwaterError
from headwater.lens import Lens, SessionLenses, TargetUse, put_into_sessions, refuse_remote_sessions
from headwater.listeners.installation import script
from headwater.versions.aligned.query import AlignedQuery
from headwater.versions.aligned.repetition import BarrierRepetition
from headwater.versions.validation.aligned_plans import plan_in_session
from headwater.versions.validation.comparable_columns import problems_of_columns
from headwater.versions.validation.comparison import compare
from headwater.versions.validation.model import (
    ComparedRows,
    RedirectedOutput,
    RepeatedBarrier,
    ResultStart,
    UnvalidatableError,
    ValidationOutcome,
    ValidationPlan,
    ValidationRequest,
    ValidationStatus,
    dump_outcome,
    load_request,
)
from headwater.versions.validation.results import (
    ResultTables,
    additions_of,
    problems_of_input,
    problems_of_settings,
    problems_of_table,
    problems_of_uses,
    replaces_rows_of_keys,
    rows_of_result,
    state_at,
    states_needed,
)

_OF_ONE_CONTEXT: Final = ("spark.app.id", "spark.app.startTime", "spark.app.submitTime", "spark.driver.port")
_CATALOGS: Final = "spark.sql.catalog."
_SHOWN: Final = 5
"""How many refusals are named."""
_REFUSED: Final = 3
"""The exit code of a job that was stopped before it saw a table. The parent reads the outcome, not this."""


class ValidatingDriver:
    """Runs one job for one validation."""

    def __init__(self, request: ValidationRequest) -> None:
        self._request = request
        self._repeated = request.plan if isinstance(request.plan, RepeatedBarrier) else None
        self._repetition: BarrierRepetition | None = None
        self._found: ValidationPlan | None = None if isinstance(request.plan, RepeatedBarrier) else request.plan
        self._results: ResultTables | None = None
        self._session: Any = None
        self._conf: dict[str, str] = {}
        self._problems: tuple[str, ...] = ()
        self._refusal = ValidationStatus.REFUSED
        self._rows = ComparedRows.ALL if self._found is None else self._found.rows
        self._outputs: list[RedirectedOutput] = []
        self._lenses: SessionLenses | None = None
        self._written: ValidationOutcome | None = None

    @property
    def _plan(self) -> ValidationPlan:
        assert self._found is not None  # noqa: S101 - a barrier's is found with the first session
        return self._found

    def run(self) -> None:
        """Run the job, compare, and clean up. The outcome is written when the interpreter ends, as it ends and not as
        the job."""
        began = time.monotonic()
        atexit.register(self._write)  # the first handler is the last that runs
        refuse_remote_sessions("headwater validate")
        label, allowed = self._request.plan.label, self._request.plan.allowed
        lenses = self._lenses = put_into_sessions(self._prepare, name=f"validate {label}", allowed=allowed)
        code = self._run_job()
        end_threads()
        lenses.close()
        outcome = self._outcome(code, lenses.uses())
        left = self._clean_up()
        seconds = round(time.monotonic() - began, 1)
        self._written = replace(outcome, kept=tuple(left), seconds=seconds, plan=self._found)

    def _write(self) -> None:
        """Write the outcome, unless it was overtaken by what the job's exit handlers did."""
        outcome = self._written
        if outcome is None:
            return
        problems = self._refusals()
        if outcome.status is ValidationStatus.COMPARED and problems:
            outcome = replace(outcome, status=ValidationStatus.NOT_COMPARED, comparison=None, problems=problems)
        write_outcome(self._request.outcome_file, outcome)

    def _refusals(self) -> tuple[str, ...]:
        """Return why the job can't be validated: what it tried was refused, whether or not it went on."""
        assert self._lenses is not None  # noqa: S101 - made before the job runs
        try:
            found = self._lenses.refusals()
        except Exception as e:  # noqa: BLE001 - the job ended the JVM
            return (f"the job can't be validated: what was refused to it isn't known ({_first_line(e)})",)
        if not found:
            return ()
        more = f", and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        return (f"the job can't be validated, since it was refused: {'; '.join(found[:_SHOWN])}{more}",)

    def _run_job(self) -> int:
        """Return the exit code that the job would have had as a process."""
        try:
            program, rest = script.parse_command(self._request.command)
        except HeadwaterError as e:
            self._problems = (str(e),)
            return _REFUSED
        try:
            script.run(program, rest, self._request.configuration)
        except SystemExit as e:
            return exit_code_of(e)

    def _prepare(self, session: Any) -> Lens:
        """Called with the job's first session, before that has a lens."""
        if self._problems:
            raise SystemExit(_REFUSED)
        self._session = session
        self._conf = configuration_of(session)
        self._problems = tuple(self._find_problems(session))
        if not self._problems:
            plan = self._plan
            self._outputs = [self._adjusted(session, output) for output in plan.outputs]
            self._check_columns(session)
        if not self._problems:
            self._results = ResultTables(session, self._request.scratch, self._outputs)
            try:
                self._results.create()
            except HeadwaterError as e:
                self._problems = (str(e),)
        if self._problems:
            session.stop()
            raise SystemExit(_REFUSED)
        assert self._results is not None  # noqa: S101 - made above
        plan = self._plan
        return Lens(
            name=f"validate {plan.label}",
            pins={name: pinned.snapshot for pinned in plan.inputs for name in pinned.names},
            redirects=dict(self._results.names),
            allowed=plan.allowed,
            writes_elsewhere=False,
        )

    def _adjusted(self, session: Any, output: RedirectedOutput) -> RedirectedOutput:
        """Return an output that is copied where adding rows may replace others."""
        is_independent = output.start is not ResultStart.EMPTY or output.replaces_first
        if is_independent or not replaces_rows_of_keys(session, output):
            return output
        if output.table == self._plan.sink.table:
            self._rows = ComparedRows.ALL
        return replace(output, start=ResultStart.COPY)

    def _find_problems(self, session: Any) -> list[str]:
        if self._repeated is not None:
            try:
                self._found = plan_in_session(session, self._repeated)
            except UnvalidatableError as e:
                return list(e.problems)
            self._repetition = AlignedQuery.stand_in = BarrierRepetition(self._repeated.committed)
        plan = self._plan
        found = [problem for pinned in plan.inputs for problem in problems_of_input(session, pinned)]
        for output in plan.outputs:
            snapshot = plan.snapshot if output.table == plan.sink.table else None
            for needed in states_needed(output, snapshot=snapshot, rows=self._rows):
                found += problems_of_table(session, output.table, needed, output.generation, output.format)
            found += problems_of_settings(session, output)
        return found

    def _check_columns(self, session: Any) -> None:
        """Look for the columns that the caller names among those of the recorded rows. The job may run for hours, and
        its result couldn't be compared then."""
        asked = self._request
        if not asked.key and not asked.ignored:
            return
        try:
            columns = self._recorded(session).columns
        except Exception as e:  # noqa: BLE001 - each format and release has errors of its own
            self._problems = (f"the rows of {self._plan.label} can't be read: {type(e).__name__}: {e}",)
            return
        found = problems_of_columns(columns, asked.key, asked.ignored, ignores_new=asked.ignores_new)
        self._problems = tuple(found)
        if self._problems:
            self._refusal = ValidationStatus.WRONG_COLUMN

    def _outcome(self, code: int, uses: Sequence[TargetUse]) -> ValidationOutcome:
        if self._problems:
            return ValidationOutcome(status=self._refusal, problems=self._problems)
        if self._results is None:
            problem = "the job made no SparkSession in its own process, so nothing was validated"
            status = ValidationStatus.JOB_FAILED if code else ValidationStatus.NOT_COMPARED
            return ValidationOutcome(status=status, problems=() if code else (problem,), exit_code=code)
        name = self._results.names[self._plan.sink.table]
        refusals = self._refusals()
        if code:
            failed = ValidationStatus.JOB_FAILED
            return ValidationOutcome(status=failed, exit_code=code, result=name, problems=refusals)
        found, problems = None, refusals or tuple(self._find_problems_after(uses, self._results.names))
        try:
            found = None if problems else self._compare(name)
        except Exception as e:  # noqa: BLE001 - said to the parent, whatever it is
            problems = (f"{type(e).__name__}: {e}",)
        status = ValidationStatus.NOT_COMPARED if found is None else ValidationStatus.COMPARED
        return ValidationOutcome(status=status, comparison=found, problems=problems, exit_code=code, result=name)

    def _find_problems_after(self, uses: Sequence[TargetUse], results: Mapping[str, str]) -> Iterator[str]:
        if self._repetition is not None and not self._repetition.count:
            yield f"the script didn't run the aligned query {self._request.plan.label.rpartition('@')[0]}"
        yield from problems_of_uses(self._outputs, results, uses)

    def _compare(self, result: str) -> Any:
        spark = self._own_session()
        request = self._request
        return compare(
            self._recorded(spark),
            rows_of_result(spark, result, self._plan.sink),
            key=request.key,
            ignored=request.ignored,
            samples=request.samples,
        )

    def _recorded(self, spark: Any) -> Any:
        """Return the rows that the result is compared with."""
        if self._rows is ComparedRows.ADDED:
            return additions_of(spark, self._plan.sink)
        return state_at(spark, self._plan.sink.table, self._plan.snapshot, self._plan.sink.format)

    def _clean_up(self) -> list[str]:
        if self._results is None:
            return []
        if self._request.keep:
            return list(self._results.names.values())
        try:
            return self._results.drop(self._own_session())
        except Exception:  # noqa: BLE001 - no session can be made any more
            return list(self._results.names.values())

    def _own_session(self) -> Any:
        """Return a session that nothing of the job's is in: of its context, or where that was stopped of another one
        with the same configuration. It reads all, and writes results alone."""
        from pyspark import SparkConf, SparkContext  # noqa: PLC0415
        from pyspark.sql import SparkSession  # noqa: PLC0415

        assert self._lenses is not None  # noqa: S101 - made before the job runs
        results = () if self._results is None else tuple(self._results.names.values())
        own_lens = Lens(name="comparison", allowed=results, reads_elsewhere=True, writes_elsewhere=False)
        with self._lenses.making(own_lens):
            if is_alive(self._session):
                own = self._session.newSession()
            else:
                conf = SparkConf().setAll(
                    [setting for setting in self._conf.items() if setting[0] not in _OF_ONE_CONTEXT]
                )
                active: Any = SparkContext
                own = SparkSession(active._active_spark_context or SparkContext(conf=conf))  # noqa: SLF001
                self._session = own
        for name, value in self._conf.items():
            if name.startswith(_CATALOGS):
                own.conf.set(name, value)
        return own


def end_threads() -> None:
    """Wait for the threads that the job has started, as the interpreter does when its main thread ends."""
    shut_down: Any = threading._shutdown  # type: ignore[attr-defined]  # noqa: SLF001 - as multiprocessing calls it
    shut_down()


def is_alive(session: Any) -> bool:
    """Return whether the context of a session still runs."""
    return session.sparkContext._jsc is not None  # noqa: SLF001 - stop() takes it away


def configuration_of(session: Any) -> dict[str, str]:
    """Return all properties of a session and its context, as they are. SET would hide secrets."""
    conf = dict(session.sparkContext.getConf().getAll())
    pairs = session._jsparkSession.sessionState().conf().getAllConfs().iterator()  # noqa: SLF001
    while pairs.hasNext():
        pair = pairs.next()
        conf[str(pair._1())] = str(pair._2())  # noqa: SLF001 - Scala's names
    return conf


def exit_code_of(end: SystemExit) -> int:
    """Return what the interpreter makes of a SystemExit."""
    if end.code is None:
        return 0
    if isinstance(end.code, int):
        return end.code
    print(end.code, file=sys.stderr)
    return 1


def write_outcome(path: str, outcome: ValidationOutcome) -> None:
    """Write an outcome so that it is there as a whole, or not at all."""
    place = Path(path)
    new = place.with_suffix(".new")
    new.write_bytes(dump_outcome(outcome))
    new.replace(place)


def _first_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]


def main(arguments: Sequence[str]) -> None:
    ValidatingDriver(load_request(Path(arguments[0]).read_bytes())).run()


if __name__ == "__main__":
    # By its name: Java that `__main__` calls is the job's.
    from headwater.versions.validation import driver

    driver.main(sys.argv[1:])
