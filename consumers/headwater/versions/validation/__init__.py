"""Validation: a job runs again on the versions that a snapshot was made from, and what it makes is compared with that.

model        what is pinned, redirected and compared, what came out, and what stands in the way
planning     finds the plan in a store's lineage: job_commits has what the application did, pinned_inputs and
             redirected_outputs what follows for its sources and sinks
aligned_plans  finds it for a barrier of an aligned job, in its checkpoint and its tables
comparison   compares two DataFrames by key or as multisets, comparable_columns says which columns
results      the tables that the job writes in place of its sinks
driver       the job's own process: makes the results, puts the lens in, runs the job, compares
process      starts that process and returns what came out
rendering    the comparison as a page

`comparison`, `results` and `driver` alone use Spark, and import it when they run.
"""

from __future__ import annotations

from headwater.versions.validation.aligned_plans import plan_repetition
from headwater.versions.validation.model import (
    RepeatedBarrier,
    ResultComparison,
    UnvalidatableError,
    ValidationOutcome,
    ValidationPlan,
    ValidationStatus,
)
from headwater.versions.validation.planning import plan_validation
from headwater.versions.validation.process import JobCommand, validate

__all__ = [
    "JobCommand",
    "RepeatedBarrier",
    "ResultComparison",
    "UnvalidatableError",
    "ValidationOutcome",
    "ValidationPlan",
    "ValidationStatus",
    "plan_repetition",
    "plan_validation",
    "validate",
]
