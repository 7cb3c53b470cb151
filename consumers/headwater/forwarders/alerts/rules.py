"""What a rule can say: one class for each kind of rule.

Texts of alerts: names in braces are replaced by values. Nothing is computed, and no value is read as a template.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Annotated, ClassVar, Final, Literal, TypeAlias

from pydantic import Field, field_validator, model_validator
from typing_extensions import Self

from headwater.config import Config, Seconds, unknown
from headwater.events.health import GapReason
from headwater.events.keys import name_pattern

_LONGEST_VALUE: Final = 500
_LONGEST_TEXT: Final = 3_000
"""Slack shows no more than that in one message."""


def template_faults(template: str, names: frozenset[str]) -> Iterator[str]:
    """Yield what is wrong with a template that may use these names."""
    try:
        pieces = list(string.Formatter().parse(template))
    except ValueError as e:
        yield f"{e}: write a name in braces, {{job}} say, and a brace itself as {{{{ or }}}}"
        return
    for _, name, form, conversion in pieces:
        if name is None:
            continue
        if form or conversion or not name.isidentifier():
            yield f"{{{name}…}} isn't a name: write only a name in braces, {{job}} say"
        elif name not in names:
            yield unknown("name", f"{{{name}}}", (f"{{{each}}}" for each in names))


def render(template: str, values: Mapping[str, str], escape: Callable[[str], str] = str) -> str:
    """Return the text. `escape` is applied to the values only."""
    pieces: list[str] = []
    for literal, name, _, _ in string.Formatter().parse(template):
        pieces.append(literal)
        if name is not None:
            pieces.append(escape(plain(values.get(name, ""))))
    return cut("".join(pieces), _LONGEST_TEXT)


def plain(text: str, longest: int = _LONGEST_VALUE) -> str:
    """Return a value as one line without control characters, of bounded length."""
    words = "".join(each if each.isprintable() else " " for each in text)
    return cut(" ".join(words.split()), longest)


def cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def escaped_for_slack(text: str) -> str:
    """Return the text as Slack shows it. Else a job called <!channel> would call everybody."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


RulePatterns: TypeAlias = tuple[str, ...]
ChangeOfColumn: TypeAlias = Literal["dropped", "renamed", "retyped", "nullability", "table-dropped", "table-renamed"]
_COMMON: Final = frozenset({"rule", "severity", "time"})


class NamePatterns:
    """Patterns of names in which `*` stands for anything, less those of others."""

    def __init__(self, wanted: RulePatterns, excluded: RulePatterns) -> None:
        self._wanted = [name_pattern(each) for each in wanted]
        self._excluded = [name_pattern(each) for each in excluded]

    def match(self, names: Iterable[str]) -> bool:
        """Return whether one of the names is wanted, and none excluded. What has no name is wanted."""
        listed = list(names)
        if not listed:
            return True
        return _any(self._wanted, listed) and not _any(self._excluded, listed)


def _any(patterns: Iterable[re.Pattern[str]], names: Iterable[str]) -> bool:
    return any(pattern.fullmatch(name) for name in names for pattern in patterns)


class Exclusions(Config):
    """What a rule isn't about although its patterns match."""

    jobs: RulePatterns = ()
    tables: RulePatterns = ()


class _Rule(Config):
    """What all rules have."""

    placeholders: ClassVar[frozenset[str]] = frozenset()
    default_text: ClassVar[str] = ""

    name: str = Field(min_length=1, max_length=100)
    """Unique in the file. Whoever changes it makes another rule of it."""
    severity: Literal["info", "warning", "critical"] = "warning"
    text: str | None = Field(default=None, max_length=2_000)
    """Names in braces are replaced."""
    to: Annotated[RulePatterns, Field(min_length=1)]
    """Names of destinations."""
    limit: int = Field(default=10, ge=1, le=1_000)
    """At most so many alerts of this rule in the time of `per`; the rest are summed up in one."""
    per: Seconds = Field(default=600.0, ge=1)
    exclude: Exclusions = Exclusions()

    @field_validator("text")
    @classmethod
    def _is_template(cls, text: str | None) -> str | None:
        faults = [] if text is None else list(template_faults(text, cls.placeholders | _COMMON))
        if faults:
            raise ValueError("; ".join(faults))
        return text

    @property
    def template(self) -> str:
        return self.default_text if self.text is None else self.text


class _JobRule(_Rule):
    jobs: RulePatterns = ("*",)
    """By `name` or `namespace/name`. A step has its application's name too."""

    @cached_property
    def job_patterns(self) -> NamePatterns:
        return NamePatterns(self.jobs, self.exclude.jobs)


class JobFailedRule(_JobRule):
    """A run ended badly."""

    placeholders = frozenset({"job", "run", "status", "error", "application", "user"})
    default_text = "{job} is {status}: {error}"

    when: Literal["job-failed"]
    status: Annotated[tuple[Literal["FAILED", "KILLED"], ...], Field(min_length=1)] = ("FAILED", "KILLED")
    inferred: bool = True
    """Whether runs count that somebody else found dead."""
    statements: bool = False
    """Whether each failed statement counts, also one whose error the application handles."""


class TableLateRule(_Rule):
    """No commit came to a table in time."""

    placeholders = frozenset({"table", "last", "late_by", "every"})
    default_text = "{table} is late: its last commit is of {last}, {late_by} more than {every} ago"

    when: Literal["table-late"]
    tables: Annotated[RulePatterns, Field(min_length=1)]
    """By `catalog.database.table` or a shorter name, or the dataset's name."""
    every: Seconds = Field(gt=0)
    """A commit is expected at least so often."""

    @cached_property
    def table_patterns(self) -> NamePatterns:
        return NamePatterns(self.tables, self.exclude.tables)

    @property
    def exact_names(self) -> list[str]:
        return [table for table in self.tables if "*" not in table]

    @model_validator(mode="after")
    def _excludes_no_jobs(self) -> Self:
        if self.exclude.jobs:
            raise ValueError("exclude.jobs: a table is late whichever job is meant to write it: remove it")
        return self


class GapRule(_JobRule):
    """Something may have been missed."""

    placeholders = frozenset({"job", "reason", "detail", "missed", "table", "application"})
    default_text = "{job}: lineage may be missing ({reason}): {detail}"

    when: Literal["gap"]
    tables: RulePatterns = ("*",)
    reasons: tuple[str, ...] = ()
    """None means all."""

    @field_validator("reasons")
    @classmethod
    def _are_known(cls, reasons: tuple[str, ...]) -> tuple[str, ...]:
        from headwater.config import unknown  # noqa: PLC0415 - only for a fault

        known = [each.value for each in GapReason]
        for reason in reasons:
            if reason not in known:
                raise ValueError(unknown("reason", reason, known))
        return reasons

    @cached_property
    def table_patterns(self) -> NamePatterns:
        return NamePatterns(self.tables, self.exclude.tables)


class ColumnChangedRule(_JobRule):
    """A column that a job reads changes."""

    placeholders = frozenset({"job", "table", "columns", "change", "user"})
    default_text = "{table}: {columns} {change}, and {job} reads that"

    when: Literal["column-changed"]
    tables: RulePatterns = ("*",)
    columns: RulePatterns = ("*",)
    """Nested ones with dots."""
    changes: Annotated[tuple[ChangeOfColumn, ...], Field(min_length=1)] = (
        "dropped",
        "renamed",
        "retyped",
        "nullability",
        "table-dropped",
        "table-renamed",
    )

    @cached_property
    def table_patterns(self) -> NamePatterns:
        return NamePatterns(self.tables, self.exclude.tables)

    @cached_property
    def column_patterns(self) -> NamePatterns:
        return NamePatterns(self.columns, ())


Rule: TypeAlias = JobFailedRule | TableLateRule | GapRule | ColumnChangedRule
RULES: Final[dict[str, type[Rule]]] = {
    "job-failed": JobFailedRule,
    "table-late": TableLateRule,
    "gap": GapRule,
    "column-changed": ColumnChangedRule,
}
