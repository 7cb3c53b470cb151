"""The judge: what was reported, and what is true, become verdicts. Pure: no files, no clock."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from headwater.conformance.facts import (
    access_facts,
    column_facts,
    description_facts,
    influence_facts,
    noop_fact,
    scenario_facts,
    state_fact,
)
from headwater.conformance.model import Scenario
from headwater.conformance.observations import Observation, ScenarioDatasets, StepView, view_step
from headwater.conformance.reported import ReportedEvent
from headwater.conformance.verdicts import WHOLE_SCENARIO, FactResult, Finding, Verdict
from headwater.errors import ConfigurationError


def judge(
    scenarios: Mapping[str, Scenario], observations: Mapping[str, Observation], events: Iterable[ReportedEvent]
) -> list[Finding]:
    """Judge the scenarios that were observed.

    One that broke off isn't judged. An event that comes again exactly as it was counts once: whoever delivers at least
    once repeats some.
    """
    by_scenario = _by_scenario(list(dict.fromkeys(events)), observations)
    found: list[Finding] = []
    for name, observation in observations.items():
        if name in scenarios and observation.error is None:
            found += _judge_scenario(scenarios[name], observation, by_scenario[name])
    return found


def _by_scenario(
    events: Sequence[ReportedEvent], observations: Mapping[str, Observation]
) -> Mapping[str, Sequence[ReportedEvent]]:
    """Scenarios are played one after another: an event belongs to the one that began last before it."""
    found: dict[str, list[ReportedEvent]] = {name: [] for name in observations}
    newest_first = sorted(observations.values(), key=lambda each: each.began, reverse=True)
    for event in sorted(events, key=lambda each: each.time):
        for observation in newest_first:
            if observation.began <= event.time:
                found[observation.scenario].append(event)
                break
    return found


def _judge_scenario(scenario: Scenario, observation: Observation, events: Sequence[ReportedEvent]) -> Iterator[Finding]:
    identities = ScenarioDatasets(observation.datasets, events)
    for name, step in scenario.steps.items():
        if name not in observation.steps:
            raise ConfigurationError(
                f"the observation of {observation.scenario} has no step {name}: play the scenario again"
            )
        view = view_step(step, observation.steps[name], observation, identities, events)
        for result in step_facts(view):
            yield Finding(observation.scenario, name, result.fact, result.verdict, result.reason)
    for result in scenario_facts(events):
        yield Finding(observation.scenario, WHOLE_SCENARIO, result.fact, result.verdict, result.reason)


def step_facts(view: StepView) -> Iterator[FactResult]:
    """Judge one step. Where nothing is reported of it, each fact is silent; of a step without effect that is right."""
    if view.step.noop:
        yield noop_fact(view)
        return
    facts = [
        *state_fact(view),
        *access_facts(view),
        *description_facts(view),
        *column_facts(view),
        *influence_facts(view),
    ]
    for fact in facts:
        yield replace(fact, verdict=Verdict.SILENT, reason="nothing is reported") if view.is_silent else fact
