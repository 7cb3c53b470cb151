"""What is true scores `seen` throughout, and each single untruth changes exactly the verdicts of its own facts."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.conformance import Verdict, judge, load_scenarios, read_event
from headwater.conformance.reported import ReportedEvent
from tests.kit.conformance.perfect_events import Document, Documents, mutations, observe, perfect_events
from tests.kit.effort import examples

SCENARIOS = load_scenarios()
OBSERVED = {name: observe(name, scenario) for name, scenario in SCENARIOS.items()}


def read(documents: Documents) -> list[ReportedEvent]:
    events = [read_event(each) for each in documents]
    assert None not in events
    return [each for each in events if each]


def verdicts(name: str, documents: Documents) -> Mapping[tuple[str, str], Verdict]:
    found = judge({name: SCENARIOS[name]}, {name: OBSERVED[name]}, read(documents))
    facts = {(each.step, each.fact): each.verdict for each in found}
    assert len(facts) == len(found)
    return facts


@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize("place_first", [True, False], ids=["by place", "by name"])
def test_what_is_true_is_seen(name: str, place_first: bool) -> None:
    facts = verdicts(name, perfect_events(SCENARIOS[name], place_first=place_first))
    assert {fact: verdict for fact, verdict in facts.items() if verdict is not Verdict.SEEN} == without_runs(
        name, facts
    )


def without_runs(name: str, facts: Mapping[tuple[str, str], Verdict]) -> Mapping[tuple[str, str], Verdict]:
    """A scenario in which nothing happens has no run that could have a parent."""
    has_statements = any(step.changes_data for step in SCENARIOS[name].steps.values())
    return {} if has_statements else {("-", "parents of runs"): Verdict.MISSED}


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENARIOS)
def test_each_untruth_changes_exactly_its_own_verdicts(name: str) -> None:
    events = perfect_events(SCENARIOS[name])
    before = verdicts(name, events)
    count = 0
    for mutation in mutations(SCENARIOS[name], events):
        expected = {**before, **{fact: Verdict(verdict) for fact, verdict in mutation.changes.items()}}
        assert mutation.changes.keys() <= before.keys(), mutation.what
        assert verdicts(name, mutation.events) == expected, mutation.what
        count += 1
    assert count >= 5


@settings(max_examples=examples(25))
@given(st.sampled_from(sorted(SCENARIOS)), st.randoms(use_true_random=False), st.booleans())
def test_one_untruth_and_any_order(name: str, choice: random.Random, place_first: bool) -> None:
    """Events come in any order, some of them twice; facets stand in either of their two places."""
    events = perfect_events(SCENARIOS[name], place_first=True)
    before = verdicts(name, events)
    mutation = choice.choice(list(mutations(SCENARIOS[name], events)))
    shuffled = [_moved(each) if place_first else each for each in (*mutation.events, choice.choice(mutation.events))]
    choice.shuffle(shuffled)
    expected = {**before, **{fact: Verdict(verdict) for fact, verdict in mutation.changes.items()}}
    assert verdicts(name, shuffled) == expected, mutation.what


def _moved(event: Document) -> Document:
    """The same event with its facets of inputs and outputs in the places that are theirs alone."""
    moved = dict(event)
    for key, place in (("inputs", "inputFacets"), ("outputs", "outputFacets")):
        if key in event:
            moved[key] = [
                {**{k: v for k, v in each.items() if k != "facets"}, place: each.get("facets", {})}
                for each in event[key]
            ]
    return moved


@pytest.mark.parametrize("name", SCENARIOS)
def test_of_a_producer_that_says_nothing_all_is_silent_but_what_changed_nothing(name: str) -> None:
    for (step, fact), verdict in verdicts(name, []).items():
        assert verdict is (Verdict.SEEN if fact == "changes nothing" else Verdict.SILENT), (step, fact)


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "run",
                    "job",
                    "dataset",
                    "inputs",
                    "outputs",
                    "facets",
                    "eventTime",
                    "columnLineage",
                    "fields",
                    "schema",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=examples(100))
@given(JUNK, st.sampled_from(["run", "job", "dataset", "inputs", "outputs"]))
def test_nothing_that_parses_breaks_the_reader(document: object, key: str) -> None:
    read_event(document)
    event = read_event({"eventTime": "2026-03-01T12:00:00Z", "job": {}, key: document})
    assert event is not None
    assert judge(SCENARIOS, {"ctas": OBSERVED["ctas"]}, [event])
