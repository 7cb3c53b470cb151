"""Facts about columns: what their values are made from, how, and which columns decide about rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from headwater.conformance.model import ColumnSource, DatasetRole
from headwater.conformance.reported import ColumnClaim
from headwater.conformance.step_view import StepView
from headwater.conformance.verdicts import FactResult, compare_sets, missed, refuse_extra, seen, wrong


def column_facts(view: StepView) -> Iterator[FactResult]:
    """Judge the direct sources of each column."""
    for target in view.step.columns:
        role, _, column = target.partition(".")
        claims = _claims(view, role)
        direct = [each for each in claims if each.is_direct and each.target.lower() == column.lower()]
        yield from _direct(view, target, direct, has_lineage=bool(claims))


def _direct(view: StepView, target: str, claims: Sequence[ColumnClaim], *, has_lineage: bool) -> Iterator[FactResult]:
    expected, fact = view.step.sources_of(target), f"sources of {target}"
    if not expected and not has_lineage:
        yield missed(fact, "no column lineage is reported")
        return
    yield compare_sets(fact, map_names(expected), [_source(view, each) for each in claims], "source")
    if expected:
        yield _transformation(view, target, expected, claims)


def _transformation(
    view: StepView, target: str, expected: Iterable[ColumnSource], claims: Iterable[ColumnClaim]
) -> FactResult:
    fact, unsaid = f"transformation of {target}", []
    for source in expected:
        name = f"{source.role}.{source.column}"
        kinds = {each.kind.upper() for each in claims if each.kind and _source(view, each) == name}
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
    indirect = [each for each in claims if not each.is_direct]
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
    yield refuse_extra(fact, allowed, [f"{_source(view, each)} {(each.kind or '?').upper()}" for each in others])


def map_names(sources: Iterable[ColumnSource]) -> list[str]:
    """Return sources as `role.column`."""
    return [f"{source.role}.{source.column}" for source in sources]


def _claims(view: StepView, role: DatasetRole) -> list[ColumnClaim]:
    return [claim for each in view.targets(role) for claim in each.lineage]


def _source(view: StepView, claim: ColumnClaim) -> str:
    return f"{view.identities.shown_name(claim.source)}.{claim.column}"
