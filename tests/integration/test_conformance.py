"""All scenarios of the conformance suite on a real Spark: what our forwarder says of them is true.

The truth is written by hand, and versions are read from the tables' metadata by the scripts.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from headwater.conformance import Finding, Verdict
from headwater.conformance.verdicts import WHOLE_SCENARIO
from tests.kit.conformance.runs import play_with_headwater

pytestmark = [
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.spark,
    pytest.mark.spark3,
    pytest.mark.needs("iceberg"),
    pytest.mark.timeout(960),
]

NOT_SEEN = {
    ("empty_write", "files", "ends with COMPLETE", "missed"),
    ("empty_write", "files", "version of orders read", "missed"),
    ("failed_statement", "in_analysis", "ends with FAIL", "silent"),
    ("failed_statement", "in_analysis", "reads nothing else", "silent"),
    ("failed_statement", "in_analysis", "writes nothing else", "silent"),
    ("self_join", "two_versions", "version of staff read", "missed"),
}
"""A write of no rows into files is reported as what a job reads and writes, without a run. Spark 3.5 shows nothing of
what fails in analysis. OpenLineage has one version for a dataset. docs/conformance.md says so."""


def test_what_is_reported_of_all_scenarios_is_true(tmp_path: Path, java_home: Path) -> None:
    """One test, because a slice may cut a module's tests apart, and then the scenarios would be played for each."""
    findings = play_with_headwater(tmp_path, java_home).findings()
    assert [each for each in findings if each.verdict is Verdict.WRONG] == []
    assert {_as_tuple(each) for each in findings if each.verdict is not Verdict.SEEN} == NOT_SEEN
    assert len(findings) > 500
    _each_real_run_has_one_start_and_one_end(findings)


def _as_tuple(finding: Finding) -> tuple[str, str, str, str]:
    return finding.scenario, finding.step, finding.fact, finding.verdict.value


def _each_real_run_has_one_start_and_one_end(findings: list[Finding]) -> None:
    """Of applications, statements, failed ones, streaming queries: as they were run, not made up."""
    of_runs = [each for each in findings if each.step == WHOLE_SCENARIO]
    facts = ("one START per run", "one end per run", "parents of runs")
    assert Counter(each.fact for each in of_runs) == dict.fromkeys(facts, 25)
    assert {each.verdict for each in of_runs} == {Verdict.SEEN}
