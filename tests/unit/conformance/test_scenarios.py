"""Truth and scripts belong together: steps, roles and versions of one are those of the other."""

from __future__ import annotations

import ast
import re

import pytest

from headwater.conformance import load_scenario, load_scenarios
from headwater.conformance.collecting import script_text
from headwater.errors import ConfigurationError
from tests.kit.conformance.perfect_events import labels_of, roles_of

SCENARIOS = load_scenarios()
each_scenario = pytest.mark.parametrize("name", SCENARIOS)
SUBTYPES = {"IDENTITY", "TRANSFORMATION", "AGGREGATION", "JOIN", "FILTER", "GROUP_BY", "SORT", "WINDOW", "CONDITIONAL"}


def test_there_are_twenty_five() -> None:
    assert len(SCENARIOS) == 25


@each_scenario
def test_steps_are_those_of_the_script(name: str) -> None:
    assert re.findall(r'it\.step\("(\w+)"', script_text(name)) == list(SCENARIOS[name].steps)


@each_scenario
def test_roles_are_named_by_the_script(name: str) -> None:
    named = set(re.findall(r'it\.(?:table|view|path)\("(\w+)"', script_text(name)))
    assert set(roles_of(SCENARIOS[name])) <= named


@each_scenario
def test_versions_are_observed_by_the_script(name: str) -> None:
    text = script_text(name)
    recorded = set(re.findall(r'it\.version\("(\w+@\d+)"\)', text))
    filled = re.findall(r'it\.create\(\s*"(\w+)",\s*"[^"]*",\s*"', text)
    streamed = re.findall(r'it\.all_versions\("(\w+)"\)', text)
    known = recorded | {f"{role}@1" for role in filled}
    assert {label for label in labels_of(SCENARIOS[name]) if label.partition("@")[0] not in streamed} <= known


@each_scenario
def test_scripts_fail_where_the_truth_says_so(name: str) -> None:
    failing = set(re.findall(r'it\.step\("(\w+)", fails=True\)', script_text(name)))
    assert failing == {step for step, truth in SCENARIOS[name].steps.items() if truth.state == "FAIL"}


@each_scenario
def test_scripts_import_no_headwater(name: str) -> None:
    for script in (name, "scenario_run", "run"):
        imports = [
            node for node in ast.walk(ast.parse(script_text(script))) if isinstance(node, ast.Import | ast.ImportFrom)
        ]
        modules = {alias.name for node in imports if isinstance(node, ast.Import) for alias in node.names}
        modules |= {node.module or "" for node in imports if isinstance(node, ast.ImportFrom)}
        assert not {module for module in modules if module.startswith("headwater")}


@each_scenario
def test_kinds_of_columns_are_the_specs(name: str) -> None:
    for step in SCENARIOS[name].steps.values():
        sources = [source for target in step.columns for source in step.sources_of(target)]
        sources += [source for role in step.influences for source in step.influences_of(role)]
        assert {kind for source in sources for kind in source.kinds} <= SUBTYPES


def test_an_unknown_scenario_names_those_that_there_are() -> None:
    with pytest.raises(ConfigurationError, match="there is no scenario mergge; there are: cached_dataframe, "):
        load_scenario("mergge")
