"""Runs a validation: the job in a process of its own, and what came out of it."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from uuid import uuid4

from headwater.errors import ConfigurationError
from headwater.versions.validation.model import (
    RepeatedBarrier,
    UnvalidatableError,
    ValidationOutcome,
    ValidationPlan,
    ValidationRequest,
    ValidationStatus,
    dump_request,
    load_outcome,
)

_DRIVER: Final = "headwater.versions.validation.driver"
_SECONDS_TO_END: Final = 60.0


@dataclass(frozen=True, kw_only=True)
class JobCommand:
    """The job that is run again, and how its result is compared."""

    command: Sequence[str]
    """`["jobs/report.py", "2026-01-31"]`, or `["-m", "company.report"]`."""
    key: Sequence[str] = ()
    ignored: Sequence[str] = ()
    ignores_new: bool = False
    """Whether `ignored` may name columns that the snapshot hasn't, because the changed job adds them."""
    keep: bool = False
    scratch: str | None = None
    """The namespace of the results; one of a new name unless given."""
    samples: int = 10
    configuration: Mapping[str, str] = field(default_factory=dict)
    """Spark properties, as spark-submit's --conf."""


def validate(plan: ValidationPlan | RepeatedBarrier, job: JobCommand) -> ValidationOutcome:
    """Run a job under the lens of a plan and compare what it writes. What the job prints goes to standard error.

    An UnvalidatableError says why nothing was run, and a ConfigurationError that the key, or what is ignored, isn't in
    the snapshot: then nothing was run, either.
    """
    scratch = job.scratch or f"headwater_validation_{uuid4().hex[:8]}"
    with tempfile.TemporaryDirectory(prefix="headwater-validate-") as folder:
        request = ValidationRequest(
            plan=plan,
            command=tuple(job.command),
            scratch=scratch,
            outcome_file=str(Path(folder) / "outcome.json"),
            configuration={**job.configuration, **marks_of(plan)},
            key=tuple(job.key),
            ignored=tuple(job.ignored),
            ignores_new=job.ignores_new,
            keep=job.keep,
            samples=job.samples,
        )
        code = _run(request, Path(folder) / "request.json")
        outcome_file = Path(request.outcome_file)
        if not outcome_file.exists():
            return ValidationOutcome(
                status=ValidationStatus.JOB_FAILED,
                exit_code=code,
                problems=(f"its process ended before anything was compared; tables may be left in {scratch}",),
            )
        outcome = load_outcome(outcome_file.read_bytes())
    if outcome.status is ValidationStatus.REFUSED:
        raise UnvalidatableError(plan.label, outcome.problems)
    if outcome.status is ValidationStatus.WRONG_COLUMN:
        raise ConfigurationError("; ".join(outcome.problems))
    return outcome


def marks_of(plan: ValidationPlan | RepeatedBarrier) -> dict[str, str]:
    """Return the properties that mark the run as a validation: questions leave it out unless they are asked for it."""
    return {"spark.headwater.validating": "true", "spark.headwater.tags.lens": f"validate {plan.label}"}


def _run(request: ValidationRequest, file: Path) -> int:
    file.write_bytes(dump_request(request))
    command = [sys.executable, "-m", _DRIVER, str(file)]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sys.stderr.fileno()) as process:  # noqa: S603
        try:
            return process.wait()
        except BaseException:
            process.terminate()
            try:
                process.wait(_SECONDS_TO_END)
            except subprocess.TimeoutExpired:
                process.kill()
            raise
