"""Facts about columns: what their values are made from, how, and which columns decide about rows.

Facts about datasets: what was read and written, in which version, with which schema, names and life cycle.

Facts about runs: how a statement ended, and that each run has one START, one end and the right parent.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from headwater.conformance.model import ColumnSource, DatasetRole
from headwater.conformance.observations import ENDS, StepView
from headwater.conformance.reported import ColumnClaim, ReportedDataset, ReportedEvent
from headwater.conformance.verdicts import FactResult, Verdict, compare_sets, missed, refuse_extra, seen, wrong
from headwater.errors import ConfigurationError


def column_facts(view: StepView) -> Iterator[FactResult]:
    """Judge the direct sources of each column."""
    for target in view.step.columns:
        role, _, column = target.partition(".")
        claims = _claims(view, role)
        direct = [claim for claim in claims if claim.is_direct and claim.target.lower() == column.lower()]
        yield from _direct(view, target, direct, has_lineage=bool(claims))


def _direct(view: StepView, target: str, claims: Sequence[ColumnClaim], *, has_lineage: bool) -> Iterator[FactResult]:
    expected, fact = view.step.sources_of(target), f"sources of {target}"
    if not expected and not has_lineage:
        yield missed(fact, "no column lineage is reported")
        return
    yield compare_sets(fact, map_names(expected), [_source(view, claim) for claim in claims], "source")
    if expected:
        yield _transformation(view, target, expected, claims)


def _transformation(
    view: StepView, target: str, expected: Iterable[ColumnSource], claims: Iterable[ColumnClaim]
) -> FactResult:
    fact, unsaid = f"transformation of {target}", []
    for source in expected:
        name = f"{source.role}.{source.column}"
        kinds = {claim.kind.upper() for claim in claims if claim.kind and _source(view, claim) == name}
        if others := sorted(kinds - source.kinds):
            true = " or ".join(sorted(source.kinds))
            return wrong(fact, f"{name} is reported as {', '.join(others)}, true is {true}")
        if not kinds:
            unsaid.append(name)
    return missed(fact, f"how it is made from {', '.join(unsaid)} isn't reported") if unsaid else seen(fact)


def influence_facts(view: StepView) -> Iterator[FactResult]:
    """Judge which columns decide which rows an output has, by the kind of influence."""
    for role in view.step.influences:
        yield from _influences(view, role)


def _influences(view: StepView, role: DatasetRole) -> Iterator[FactResult]:
    """An influence whose kind isn't said counts as of each kind."""
    expected, claims = view.step.influences_of(role), _claims(view, role)
    indirect = [claim for claim in claims if not claim.is_direct]
    kinds = sorted({kind for source in expected for kind in source.kinds})
    for kind in kinds:
        names = map_names(source for source in expected if kind in source.kinds)
        claimed = [_source(view, each) for each in indirect if each.kind and each.kind.upper() == kind]
        unsaid = {_source(view, each) for each in indirect if not each.kind}
        yield compare_sets(f"{kind} of {role}", names, {*claimed, *(unsaid & set(names))}, "column")
    fact = f"no other influence on {role}"
    if not claims:
        yield missed(fact, "no column lineage is reported")
        return
    others = [each for each in indirect if (each.kind or "").upper() not in kinds]
    allowed = {f"{name} ?" for name in map_names(expected)}
    yield refuse_extra(fact, allowed, [f"{_source(view, other)} {(other.kind or '?').upper()}" for other in others])


def map_names(sources: Iterable[ColumnSource]) -> list[str]:
    """Return sources as `role.column`."""
    return [f"{source.role}.{source.column}" for source in sources]


def _claims(view: StepView, role: DatasetRole) -> list[ColumnClaim]:
    return [claim for target in view.targets(role) for claim in target.lineage]


def _source(view: StepView, claim: ColumnClaim) -> str:
    return f"{view.identities.shown_name(claim.source)}.{claim.column}"


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
        yield seen(fact) if role in found else missed(fact, f"{role} isn't among {_list_text(found)}")
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
    claims = [target.columns for target in view.targets(role) if target.columns is not None]
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
    is_placed = any(view.identities.has_place(dataset, role) for dataset in datasets)
    yield seen(f"place of {role}") if is_placed else missed(f"place of {role}", "no name of it is its place")
    if view.identities.has_names(role):
        fact = f"name of {role}"
        is_named = any(view.identities.has_table_name(dataset, role) for dataset in datasets)
        yield seen(fact) if is_named else missed(fact, "neither its name nor a symlink is its name in the catalog")


def _lifecycle(view: StepView, role: DatasetRole, change: str) -> FactResult:
    fact = f"life cycle of {role}"
    word, _, old = change.partition(" ")
    changes = {target.lifecycle for target in view.targets(role) if target.lifecycle}
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
    names = [target.previous for target in view.targets(role) if target.previous]
    for name in names:
        if view.identities.role_of_name(name) != old:
            return wrong(fact, f"it is said to have been {name}, true is {old}")
    return seen(fact) if names else missed(fact, f"that it was {old} isn't reported")


def _list_text(words: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(words)) or "what is reported: nothing"


ONE_START = "one START per run"
ONE_END = "one end per run"
PARENTS = "parents of runs"


def state_fact(view: StepView) -> Iterator[FactResult]:
    """Judge how the runs of a step ended."""
    if view.step.state is None:
        return
    fact = f"ends with {view.step.state}"
    ends = {event.state for of_run in view.runs.values() for event in of_run if event.state in ENDS}
    others = ends - {view.step.state, None}
    if view.step.state == "FAIL":
        others = {end for end in others if end != "COMPLETE"} | _completed_writes(view)
    if others:
        yield wrong(fact, f"{', '.join(sorted(map(str, others)))} is reported")
    else:
        yield seen(fact) if view.step.state in ends else missed(fact, "no end is reported")


def _completed_writes(view: StepView) -> set[str]:
    """A run that fails may have parts that complete, but none that says to have written."""
    return {
        "COMPLETE"
        for of_run in view.runs.values()
        if any(event.state == "COMPLETE" for event in of_run) and any(event.outputs for event in of_run)
    }


def noop_fact(view: StepView) -> FactResult:
    """Judge that a statement without effect isn't reported as a change."""
    fact = "changes nothing"
    changes = [
        f"{each.lifecycle or 'a write'} of {view.identities.shown(each)}"
        for event in view.events
        for each in (*event.outputs, *filter(None, [event.subject]))
    ]
    return wrong(fact, f"reported is {', '.join(dict.fromkeys(changes))}") if changes else seen(fact)


def scenario_facts(events: Sequence[ReportedEvent]) -> Iterator[FactResult]:
    """Judge all runs of a scenario."""
    runs: dict[str, list[ReportedEvent]] = {}
    for event in events:
        if event.run is not None and event.state is not None:
            runs.setdefault(event.run, []).append(event)
    if not runs:
        for fact in (ONE_START, ONE_END, PARENTS):
            yield FactResult(fact, Verdict.SILENT, "no run is reported")
        return
    yield _one(ONE_START, {run: _count(of_run, {"START"}) for run, of_run in runs.items()})
    yield _one(ONE_END, {run: _count(of_run, ENDS) for run, of_run in runs.items()})
    yield _parents(runs)


def _count(of_run: Sequence[ReportedEvent], states: frozenset[str] | set[str]) -> int:
    return sum(event.state in states for event in of_run)


def _one(fact: str, counts: Mapping[str, int]) -> FactResult:
    several = [f"{run} has {count}" for run, count in counts.items() if count > 1]
    none = [run for run, count in counts.items() if not count]
    if several:
        return wrong(fact, "; ".join(several))
    return missed(fact, f"there is none of {', '.join(none)}") if none else seen(fact)


def _parents(runs: Mapping[str, Sequence[ReportedEvent]]) -> FactResult:
    """A parent that isn't among the runs may be of another system, a scheduler's say."""
    has_right_one = False
    for of_run in runs.values():
        for parent in {event.parent for event in of_run if event.parent}:
            jobs = {event.job for event in runs.get(parent.run, ())}
            if jobs and parent.job not in jobs:
                names = ", ".join(sorted(str(job) for job in jobs))
                return wrong(PARENTS, f"{parent.run} is said to be a run of {parent.job}, and is one of {names}")
            has_right_one = has_right_one or bool(jobs)
    return seen(PARENTS) if has_right_one else missed(PARENTS, "no run names a run that it is a part of")
