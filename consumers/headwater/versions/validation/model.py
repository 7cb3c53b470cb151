"""What is pinned, redirected and compared, what came out, and what stands in the way, all of it told at once.

All of it can be written as JSON, for another process.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from pydantic import TypeAdapter

from headwater.errors import TerminalError
from headwater.versions.aligned.repetition import CommittedBarrier


class UnvalidatableError(TerminalError):
    """A snapshot can't be made again, for each of these reasons. Nothing was run."""

    def __init__(self, sink: str, problems: Sequence[str]) -> None:
        self.sink = sink
        self.problems = tuple(problems)
        lines = "".join(f"\n  - {problem}" for problem in problems)
        super().__init__(f"{sink} can't be validated:{lines}")


class ValidationObstacles:
    """Collects what stands in the way of one validation, and what is only noted."""

    def __init__(self, label: str, allowed: Collection[str], *, is_forced: bool) -> None:
        self._label = label
        self._allowed = allowed
        self._is_forced = is_forced
        self._problems: dict[str, None] = {}
        self._notes: dict[str, None] = {}

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(self._notes)

    def add(self, problem: str) -> None:
        self._problems[problem] = None

    def add_doubt(self, text: str) -> None:
        """Add what isn't known: a note, if the caller runs the job anyway."""
        if self._is_forced:
            self.note(text)
        else:
            self.add(f"{text}; --anyway runs it nevertheless")

    def note(self, text: str) -> None:
        self._notes[text] = None

    def allows(self, name: str) -> bool:
        """Return whether the caller lets a table or path be read or written as it is now."""
        return name in self._allowed or "*" in self._allowed

    def error(self, problem: str) -> UnvalidatableError:
        """Return an error that tells this one problem, where looking for others makes no sense."""
        return UnvalidatableError(self._label, [problem])

    def check(self) -> None:
        """Raise an UnvalidatableError if anything stands in the way."""
        if self._problems:
            raise UnvalidatableError(self._label, list(self._problems))


class ResultStart(str, Enum):
    """What a result table holds before the job runs."""

    EMPTY = "EMPTY"
    """Nothing: the job only adds to the table, or replaces all of it."""
    COPY = "COPY"
    """What its sink held before the job: the job reads or changes that."""
    ABSENT = "ABSENT"
    """The job makes the table itself."""


class ComparedRows(str, Enum):
    """Which rows of a sink are compared."""

    ADDED = "ADDED"
    """Those that the job's commits added."""
    ALL = "ALL"


@dataclass(frozen=True, kw_only=True)
class PinnedInput:
    """A table at the version at which the job reads it."""

    table: str
    names: tuple[str, ...]
    """How the job may name it: by a catalog, or by its path."""
    snapshot: str
    format: str | None = None
    generation: str | None = None
    is_recorded: bool = True
    """Whether the recorded job read it. Else the caller pins a table that only the changed job may read."""


@dataclass(frozen=True, kw_only=True)
class RedirectedOutput:
    """A table that the job writes, with the commits that it made."""

    table: str
    """Its name in full."""
    format: str
    generation: str | None
    commits: tuple[tuple[int | None, int], ...]
    """Each commit's parent and snapshot, the oldest first; without those that keep all rows."""
    start: ResultStart
    replaces_first: bool = False
    """Whether the first of the commits replaced all rows."""

    @property
    def before(self) -> int | None:
        """The snapshot that the job found; None if the table was empty or absent."""
        return self.commits[0][0] if self.commits else None


@dataclass(frozen=True, kw_only=True)
class ValidationPlan:
    """How a snapshot is made again."""

    sink: RedirectedOutput
    snapshot: int
    rows: ComparedRows
    inputs: tuple[PinnedInput, ...]
    outputs: tuple[RedirectedOutput, ...]
    """All tables that the job wrote, the sink among them."""
    job: str | None
    run: str | None
    allowed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        return f"{self.sink.table}@{self.snapshot}"


@dataclass(frozen=True, kw_only=True)
class RepeatedBarrier:
    """A barrier of an aligned job that is made again. What that needs is found in the job's session."""

    committed: CommittedBarrier
    sink: str
    """The table that is compared, as the job names it."""
    sinks: tuple[str, ...]
    """All tables that the barrier wrote once."""
    allowed: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        return f"{self.committed.start.job}@{self.committed.barrier.number}"


@dataclass(frozen=True, kw_only=True)
class ComparedColumn:
    """A column that both sides have."""

    name: str
    recorded_type: str
    result_type: str
    different: int | None = None
    """In how many rows of equal key it differs; None if rows were compared without a key."""

    @property
    def has_other_type(self) -> bool:
        return self.recorded_type != self.result_type


@dataclass(frozen=True, kw_only=True)
class SampleRow:
    """A row that only one side has, as texts."""

    values: Mapping[str, str | None]
    count: int = 1
    """How often it is there more than on the other side."""


@dataclass(frozen=True, kw_only=True)
class SampleDifference:
    """Two rows of one key, with the columns in which they differ: recorded, then result."""

    key: Mapping[str, str | None]
    columns: Mapping[str, tuple[str | None, str | None]]


@dataclass(frozen=True, kw_only=True)
class ResultComparison:
    """Rows and columns of a recorded snapshot beside those of the result."""

    recorded_rows: int
    result_rows: int
    equal: int
    only_recorded: int
    only_result: int
    different: int | None
    """Rows of one key that differ; None if rows were compared without a key."""
    repeated_keys: int
    """Keys that several rows of a side have: their rows are compared as multisets."""
    key: tuple[str, ...]
    columns: tuple[ComparedColumn, ...]
    ignored: tuple[str, ...]
    missing_in_result: tuple[str, ...]
    missing_in_recorded: tuple[str, ...]
    is_reordered: bool
    """Whether the columns of the two sides stand in another order, which makes no difference."""
    samples_only_recorded: tuple[SampleRow, ...] = ()
    samples_only_result: tuple[SampleRow, ...] = ()
    samples_different: tuple[SampleDifference, ...] = ()

    @property
    def is_equal(self) -> bool:
        rows = self.only_recorded or self.only_result or self.different
        columns = self.missing_in_result or self.missing_in_recorded
        return not rows and not columns and not any(column.has_other_type for column in self.columns)


class ValidationStatus(str, Enum):
    """How far a validation got."""

    COMPARED = "COMPARED"
    REFUSED = "REFUSED"
    """Something couldn't be read as it was, so the job saw no table."""
    WRONG_COLUMN = "WRONG_COLUMN"
    """The key, or what is ignored, names a column that the snapshot hasn't, so the job saw no table."""
    JOB_FAILED = "JOB_FAILED"
    NOT_COMPARED = "NOT_COMPARED"
    """The job ended well, and its result couldn't be compared."""


@dataclass(frozen=True, kw_only=True)
class ValidationOutcome:
    """What came out."""

    status: ValidationStatus
    comparison: ResultComparison | None = None
    problems: tuple[str, ...] = ()
    exit_code: int | None = None
    """The job's own."""
    result: str | None = None
    """The table that the job wrote in place of the sink."""
    kept: tuple[str, ...] = ()
    """Result tables that are still there."""
    seconds: float = 0.0
    plan: ValidationPlan | None = None
    """What was done, if that was found in the job's session."""

    @property
    def is_equal(self) -> bool:
        return self.comparison is not None and self.comparison.is_equal


@dataclass(frozen=True, kw_only=True)
class ValidationRequest:
    """What the job's process is told."""

    plan: ValidationPlan | RepeatedBarrier
    command: tuple[str, ...]
    scratch: str
    """The namespace of the results, in the catalog of each sink."""
    outcome_file: str
    configuration: Mapping[str, str]
    key: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    ignores_new: bool = False
    keep: bool = False
    samples: int = 10


_REQUEST: TypeAdapter[ValidationRequest] = TypeAdapter(ValidationRequest)
_OUTCOME: TypeAdapter[ValidationOutcome] = TypeAdapter(ValidationOutcome)


def dump_request(request: ValidationRequest) -> bytes:
    return _REQUEST.dump_json(request)


def load_request(data: bytes) -> ValidationRequest:
    return _REQUEST.validate_json(data)


def dump_outcome(outcome: ValidationOutcome) -> bytes:
    return _OUTCOME.dump_json(outcome)


def load_outcome(data: bytes) -> ValidationOutcome:
    return _OUTCOME.validate_json(data)
