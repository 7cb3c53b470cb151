"""OpenLineage events that say exactly what is true of a scenario, and the ways in which one of them can be untrue.

Made from the hand-written truth alone; nothing of the judge but its model is used.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any, Final
from uuid import UUID

from headwater.conformance.model import Scenario, ScenarioStep
from headwater.conformance.observations import Observation

Document = dict[str, Any]
Documents = list[Document]
BEGAN: Final = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
APPLICATION: Final = {"namespace": "default", "name": "app"}
APPLICATION_RUN: Final = str(UUID(int=1))


def roles_of(scenario: Scenario) -> list[str]:
    """All roles that the truth names."""
    names: set[str] = set()
    for step in scenario.steps.values():
        names |= {*step.read_roles, *step.written_roles, *step.may_read, *step.may_write, *step.lifecycle}
        names |= {*step.names, *step.schemas, *step.influences}
        names |= {change.split(" ")[1] for change in step.lifecycle.values() if " " in change}
    return sorted(names)


def labels_of(scenario: Scenario) -> list[str]:
    return sorted({word for step in scenario.steps.values() for word in (*step.reads, *step.writes) if "@" in word})


def observe(name: str, scenario: Scenario) -> Observation:
    """The scenario as it would be observed: a step each ten seconds."""
    steps = {
        step: {"began": BEGAN + timedelta(seconds=10 * place), "until": BEGAN + timedelta(seconds=10 * place + 9)}
        for place, step in enumerate(scenario.steps, 1)
    }
    return Observation.model_validate(
        {
            "scenario": name,
            "began": BEGAN,
            "ended": BEGAN + timedelta(hours=1),
            "datasets": {
                role: {"place": f"file:/w/{role}", "names": [f"lake.db.{role}", f"db.{role}"]}
                for role in roles_of(scenario)
            },
            "versions": {label: version_of(label) for label in labels_of(scenario)},
            "steps": steps,
        }
    )


def version_of(label: str) -> str:
    return str(10**18 + sum(ord(letter) * 7**place for place, letter in enumerate(label)))


def perfect_events(scenario: Scenario, *, place_first: bool = True) -> Documents:
    """What a perfect producer says; datasets are named by their places, or by their tables with the places as links."""
    events = [_run_event(APPLICATION_RUN, "START", _time(0, 0), APPLICATION, parent=False)]
    for number, step in enumerate(scenario.steps.values(), 1):
        if step.changes_data:
            events += _statement(step, number, place_first=place_first)
        elif not step.noop:
            events += _ddl(step, number, place_first=place_first)
    return [*events, _run_event(APPLICATION_RUN, "COMPLETE", _time(99, 0), APPLICATION, parent=False)]


def _time(step: int, seconds: int) -> str:
    return (BEGAN + timedelta(seconds=10 * step + seconds)).isoformat()


def _run_event(run: str, state: str, time: str, job: Document, *, parent: bool = True) -> Document:
    facets = {"parent": {"run": {"runId": APPLICATION_RUN}, "job": dict(APPLICATION)}} if parent else {}
    return {
        "eventType": state,
        "eventTime": time,
        "run": {"runId": run, "facets": facets},
        "job": dict(job),
        "inputs": [],
        "outputs": [],
    }


def _statement(step: ScenarioStep, number: int, *, place_first: bool) -> Documents:
    run, job = str(UUID(int=number + 1)), {"namespace": "default", "name": f"app.{number}"}
    assert step.state is not None
    start, middle, end = (
        _run_event(run, state, _time(number, second), job)
        for second, state in enumerate(("START", "RUNNING", step.state), 1)
    )
    for words, key in ((step.reads, "inputs"), (step.writes, "outputs")):
        for word in words:
            role = word.partition("@")[0]
            middle[key].append(_dataset(role, place_first=place_first, version=word if "@" in word else None))
    for output in middle["outputs"]:
        output["facets"] |= _facets(step, _role_of(output), place_first=place_first)
    return [start, middle, end]


def _ddl(step: ScenarioStep, number: int, *, place_first: bool) -> Documents:
    return [
        {
            "eventTime": _time(number, 1),
            "dataset": (dataset := _dataset(role, place_first=place_first))
            | {"facets": dataset["facets"] | _facets(step, role, place_first=place_first)},
        }
        for role in dict.fromkeys([*step.lifecycle, *step.schemas])
    ]


def _name(role: str, *, place_first: bool) -> Document:
    if place_first:
        return {"namespace": "file", "name": f"/w/{role}"}
    return {"namespace": "file:/w", "name": f"db.{role}"}


def _dataset(role: str, *, place_first: bool, version: str | None = None) -> Document:
    other = {**_name(role, place_first=not place_first), "type": "TABLE" if place_first else "LOCATION"}
    facets: Document = {"symlinks": {"identifiers": [other]}}
    if version is not None:
        facets["version"] = {"datasetVersion": version_of(version)}
    return {**_name(role, place_first=place_first), "facets": facets}


def _role_of(dataset: Document) -> str:
    return str(dataset["name"].replace("db.", "/w/").rpartition("/")[2])


def _facets(step: ScenarioStep, role: str, *, place_first: bool) -> Document:
    facets: Document = {}
    if role in step.schemas:
        fields = [dict(zip(("name", "type"), text.split(" ", 1), strict=True)) for text in step.schemas[role]]
        facets["schema"] = {"fields": fields}
    change, _, old = step.lifecycle.get(role, "none").partition(" ")
    if change != "none":
        facets["lifecycleStateChange"] = {"lifecycleStateChange": change}
    if old:
        facets["lifecycleStateChange"]["previousIdentifier"] = _name(old, place_first=place_first)
    lineage = _column_lineage(step, role, place_first=place_first)
    return facets | ({"columnLineage": lineage} if lineage else {})


def _column_lineage(step: ScenarioStep, role: str, *, place_first: bool) -> Document:
    def source(text: str, kind: str) -> Document:
        column, _, subtypes = text.partition(" ")
        of, _, name = column.partition(".")
        transformation = {"type": kind, "subtype": subtypes.split("|")[0]}
        return {**_name(of, place_first=place_first), "field": name, "transformations": [transformation]}

    fields = {
        target.partition(".")[2]: {"inputFields": [source(each, "DIRECT") for each in sources]}
        for target, sources in step.columns.items()
        if target.partition(".")[0] == role
    }
    whole = [source(each, "INDIRECT") for each in step.influences.get(role, ())]
    return {"fields": fields, "dataset": whole} if fields or role in step.influences else {}


@dataclass(frozen=True)
class Mutation:
    """Events of which one thing is untrue, and exactly the facts whose verdict that changes."""

    what: str
    events: Documents
    changes: dict[tuple[str, str], str] = field(default_factory=dict)
    """By step and fact."""


def mutations(scenario: Scenario, events: Documents) -> Iterator[Mutation]:
    """All ways in which one thing of a scenario can be untrue."""
    for number, (name, step) in enumerate(scenario.steps.items(), 1):
        if step.noop:
            yield _invented_change(name, number, events)
            continue
        places = [
            place for place, event in enumerate(events) if _time(number, 0) < event["eventTime"] < _time(number, 9)
        ]
        if step.changes_data:
            start, middle, end = places
            yield from _runs(name, step, events, start, end)
            yield from _inputs(name, step, events, middle)
            yield from _outputs(name, step, events, middle)
            for place, output in enumerate(events[middle]["outputs"]):
                if list(map(_role_of, events[middle]["outputs"])).count(_role_of(output)) == 1:
                    yield from _of_dataset(name, step, events, lambda e, m=middle, p=place: e[m]["outputs"][p])
        else:
            for place in places:
                yield from _of_dataset(name, step, events, lambda e, p=place: e[p]["dataset"])


def _invented_change(name: str, number: int, events: Documents) -> Mutation:
    dataset = {"namespace": "file", "name": "/w/other", "facets": {}}
    invented = {"eventTime": _time(number, 1), "dataset": dataset}
    return Mutation("a change that wasn't", [*events, invented], {(name, "changes nothing"): "wrong"})


def _runs(name: str, step: ScenarioStep, events: Documents, start: int, end: int) -> Iterator[Mutation]:
    ends = (name, f"ends with {step.state}")
    one_start, one_end, parents = ("-", "one START per run"), ("-", "one end per run"), ("-", "parents of runs")

    def later(place: int) -> Document:
        again = copy.deepcopy(events[place])
        time = datetime.fromisoformat(again["eventTime"]) + timedelta(milliseconds=1)
        return again | {"eventTime": time.isoformat()}

    yield Mutation("each event twice", [*events, *copy.deepcopy(events)], {})
    yield Mutation("a second START", [*events, later(start)], {one_start: "wrong"})
    yield Mutation("a second end", [*events, later(end)], {one_end: "wrong"})
    yield Mutation("no START", events[:start] + events[start + 1 :], {one_start: "missed"})
    yield Mutation("no end", events[:end] + events[end + 1 :], {one_end: "missed", ends: "missed"})
    other = copy.deepcopy(events)
    other[end]["eventType"] = "ABORT"
    yield Mutation("another end", other, {ends: "wrong"})
    other = copy.deepcopy(events)
    other[end]["run"]["facets"]["parent"]["job"]["name"] = "another"
    yield Mutation("a parent that is another job's", other, {parents: "wrong"})


def _inputs(name: str, step: ScenarioStep, events: Documents, middle: int) -> Iterator[Mutation]:
    for role, labels in step.read_roles.items():
        mutated = copy.deepcopy(events)
        inputs = mutated[middle]["inputs"]
        inputs[:] = [each for each in inputs if _role_of(each) != role]
        lost = {(name, f"reads {role}"): "missed"} | ({(name, f"version of {role} read"): "missed"} if labels else {})
        if role not in step.written_roles:
            lost |= {(name, f"{word} of {role}"): "missed" for word in ("place", "name") if role in step.names}
        yield Mutation(f"no input {role}", mutated, lost)
    for place, word in enumerate(step.reads):
        if "@" in word:
            yield _with_version(name, f"version of {word.partition('@')[0]} read", events, (middle, "inputs", place))
    extra = copy.deepcopy(events)
    extra[middle]["inputs"].append({"namespace": "s3://b", "name": "other"})
    yield Mutation("another input", extra, {(name, "reads nothing else"): "wrong"})


def _with_version(name: str, fact: str, events: Documents, at: tuple[int, str, int]) -> Mutation:
    mutated = copy.deepcopy(events)
    middle, key, place = at
    mutated[middle][key][place]["facets"]["version"]["datasetVersion"] = "77"
    return Mutation(f"another {fact}", mutated, {(name, fact): "wrong"})


def _outputs(name: str, step: ScenarioStep, events: Documents, middle: int) -> Iterator[Mutation]:
    for place, word in enumerate(step.writes):
        if "@" in word:
            fact = f"version of {word.partition('@')[0]} made"
            yield _with_version(name, fact, events, (middle, "outputs", place))
            none = copy.deepcopy(events)
            del none[middle]["outputs"][place]["facets"]["version"]
            yield Mutation(f"no {fact}", none, {(name, fact): "missed"})
    extra = copy.deepcopy(events)
    extra[middle]["outputs"].append({"namespace": "s3://b", "name": "other"})
    yield Mutation("another output", extra, {(name, "writes nothing else"): "wrong"})


def _of_dataset(name: str, step: ScenarioStep, events: Documents, find: Any) -> Iterator[Mutation]:
    role = _role_of(find(events))

    def changed(what: str, facets_change: Any, changes: dict[str, str]) -> Mutation:
        mutated = copy.deepcopy(events)
        facets_change(find(mutated)["facets"])
        return Mutation(f"{what} of {role}", mutated, {(name, fact): verdict for fact, verdict in changes.items()})

    if role in step.schemas:
        fact = f"schema of {role}"
        yield changed("no schema", lambda facets: facets.pop("schema"), {fact: "missed"})
        yield changed("a type", lambda facets: facets["schema"]["fields"][0].update(type="binary"), {fact: "wrong"})
        yield changed("a column less", lambda facets: facets["schema"]["fields"].pop(), {fact: "wrong"})
    if role in step.lifecycle:
        fact, change = f"life cycle of {role}", step.lifecycle[role]
        untrue = {"lifecycleStateChange": {"lifecycleStateChange": "TRUNCATE"}}
        yield changed("an untrue change", lambda facets: facets.update(untrue), {fact: "wrong"})
        if change != "none":
            yield changed("no change", lambda facets: facets.pop("lifecycleStateChange"), {fact: "missed"})
    yield from _of_columns(step, role, changed)


def _of_columns(step: ScenarioStep, role: str, changed: Any) -> Iterator[Mutation]:
    def fields(facets: Document, column: str) -> Documents:
        found: Documents = facets["columnLineage"]["fields"][column]["inputFields"]
        return found

    other = {"namespace": "file", "name": "/w/other", "field": "x"}
    for target, sources in step.columns.items():
        of, _, column = target.partition(".")
        if of != role:
            continue
        from_, how = f"sources of {target}", f"transformation of {target}"
        direct = {**other, "transformations": [{"type": "DIRECT", "subtype": "IDENTITY"}]}
        yield changed("another source", lambda f, c=column, d=direct: fields(f, c).append(d), {from_: "wrong"})
        if sources:
            lost = {from_: "missed", how: "missed"}
            untrue = [{"type": "DIRECT", "subtype": "MASKED"}]
            yield changed("a source less", lambda f, c=column: fields(f, c).pop(), lost)
            yield changed(
                "another transformation",
                lambda f, c=column, u=untrue: fields(f, c)[0].update(transformations=u),
                {how: "wrong"},
            )
            yield changed(
                "an unsaid transformation",
                lambda f, c=column: fields(f, c)[0].update(transformations=[]),
                {how: "missed"},
            )
    for place, text in enumerate(step.influences.get(role, ())):
        kind = text.partition(" ")[2]
        yield changed(
            "an influence less",
            lambda f, p=place: f["columnLineage"]["dataset"].pop(p),
            {f"{kind} of {role}": "missed"},
        )
        influence = {**other, "transformations": [{"type": "INDIRECT", "subtype": kind}]}
        yield changed(
            "another influence",
            lambda f, u=influence: f["columnLineage"]["dataset"].append(u),
            {f"{kind} of {role}": "wrong"},
        )
    if role in step.influences and (step.influences[role] or any(step.columns.values())):
        influence = {**other, "transformations": [{"type": "INDIRECT", "subtype": "SORT"}]}
        yield changed(
            "an untrue kind of influence",
            lambda f: f["columnLineage"]["dataset"].append(influence),
            {f"no other influence on {role}": "wrong"},
        )
