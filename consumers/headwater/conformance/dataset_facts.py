"""Facts about datasets: what was read and written, in which version, with which schema, names and life cycle."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from headwater.conformance.model import DatasetRole
from headwater.conformance.reported import ReportedDataset
from headwater.conformance.step_view import StepView
from headwater.conformance.verdicts import FactResult, compare_sets, missed, refuse_extra, seen, wrong
from headwater.errors import ConfigurationError

_SAME_TYPES: Final = {
    "long": "bigint",
    "integer": "int",
    "short": "smallint",
    "byte": "tinyint",
    "float": "real",
    "varchar": "string",
}
_NO_CHANGE: Final = "none"


class _Access(NamedTuple):
    """Reading or writing: the words for it, what is true, and what was reported."""

    verb: str
    done: str
    expected: Mapping[DatasetRole, frozenset[str]]
    optional: Collection[DatasetRole]
    reported: Sequence[ReportedDataset]


def access_facts(view: StepView) -> Iterator[FactResult]:
    """Judge what was read and written, and that nothing else was."""
    step = view.step
    writable = {*step.may_write, *step.lifecycle}
    yield from _accesses(view, _Access("reads", "read", step.read_roles, step.may_read, list(view.inputs)))
    yield from _accesses(view, _Access("writes", "made", step.written_roles, writable, list(view.outputs)))


def _accesses(view: StepView, access: _Access) -> Iterator[FactResult]:
    found = [view.identities.shown(each) for each in access.reported]
    for role, labels in access.expected.items():
        fact = f"{access.verb} {role}"
        yield seen(fact) if role in found else missed(fact, f"{role} isn't among {_listed(found)}")
        if labels:
            of_role = [each for each in access.reported if view.identities.role_of(each) == role]
            versions = {_version(view, label) for label in labels}
            claimed = {each.version for each in of_role if each.version}
            yield compare_sets(f"version of {role} {access.done}", versions, claimed, "version")
    yield refuse_extra(f"{access.verb} nothing else", {*access.expected, *access.optional}, found)


def _version(view: StepView, label: str) -> str:
    try:
        return view.observation.versions[label]
    except KeyError:
        raise ConfigurationError(
            f"the observation of {view.observation.scenario} has no version {label}: play the scenario again"
        ) from None


def description_facts(view: StepView) -> Iterator[FactResult]:
    """Judge schemas, names and changes of the life cycle."""
    for role, columns in view.step.schemas.items():
        yield _schema(view, role, columns)
    for role in view.step.names:
        yield from _names(view, role)
    for role, change in view.step.lifecycle.items():
        yield _lifecycle(view, role, change)


def _schema(view: StepView, role: DatasetRole, columns: Sequence[str]) -> FactResult:
    fact, expected = f"schema of {role}", [_column(*text.split(" ", 1)) for text in columns]
    claims = [each.columns for each in view.targets(role) if each.columns is not None]
    for claim in claims:
        if not _are_equal(claim, expected):
            return wrong(fact, f"reported is {_columns_text(claim)}, true is {', '.join(columns)}")
    return seen(fact) if claims else missed(fact, "no schema is reported")


def _are_equal(claim: Sequence[tuple[str, str | None]], expected: Sequence[tuple[str, str]]) -> bool:
    """A type that isn't reported is no other type."""
    pairs = zip(claim, expected, strict=False)
    return len(claim) == len(expected) and all(
        _column(name, type_ or true_type) == (true_name, true_type) for (name, type_), (true_name, true_type) in pairs
    )


def _column(name: str, type_: str) -> tuple[str, str]:
    plain = type_.lower().replace(" ", "")
    return name.lower(), _SAME_TYPES.get(plain, plain)


def _columns_text(columns: Iterable[tuple[str, str | None]]) -> str:
    return ", ".join(f"{name} {type_ or '?'}" for name, type_ in columns)


def _names(view: StepView, role: DatasetRole) -> Iterator[FactResult]:
    datasets = list(view.all_of(role))
    is_placed = any(view.identities.has_place(each, role) for each in datasets)
    yield seen(f"place of {role}") if is_placed else missed(f"place of {role}", "no name of it is its place")
    if view.identities.has_names(role):
        fact = f"name of {role}"
        is_named = any(view.identities.has_table_name(each, role) for each in datasets)
        yield seen(fact) if is_named else missed(fact, "neither its name nor a symlink is its name in the catalog")


def _lifecycle(view: StepView, role: DatasetRole, change: str) -> FactResult:
    fact = f"life cycle of {role}"
    word, _, old = change.partition(" ")
    changes = {each.lifecycle for each in view.targets(role) if each.lifecycle}
    others = sorted(changes - {word})
    if others:
        return wrong(fact, f"{', '.join(others)} is reported, true is {word}")
    if word == _NO_CHANGE:
        return seen(fact)
    if not changes:
        return missed(fact, f"{word} isn't reported")
    return _previous(view, role, old) if old else seen(fact)


def _previous(view: StepView, role: DatasetRole, old: DatasetRole) -> FactResult:
    fact = f"life cycle of {role}"
    names = [each.previous for each in view.targets(role) if each.previous]
    for name in names:
        if view.identities.role_of_name(name) != old:
            return wrong(fact, f"it is said to have been {name}, true is {old}")
    return seen(fact) if names else missed(fact, f"that it was {old} isn't reported")


def _listed(words: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(words)) or "what is reported: nothing"
