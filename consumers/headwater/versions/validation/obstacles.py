"""What stands in the way of a validation. All of it is told at once."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from headwater.errors import TerminalError


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
