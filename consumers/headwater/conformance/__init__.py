"""Judges the OpenLineage events of any producer against scenarios whose truth is written by hand.

`scripts/` holds the scenarios as plain PySpark, `truth/` what is true of each. The judge (`judge.py`) is pure: events
and truth in, verdicts out. Nothing here imports pyspark, or of headwater anything but its errors.
"""

from headwater.conformance.judge import judge
from headwater.conformance.model import Scenario, load_scenario, load_scenarios
from headwater.conformance.observations import Observation, read_observations
from headwater.conformance.reported import ReportedEvent, read_event
from headwater.conformance.verdicts import Finding, Verdict

__all__ = [
    "Finding",
    "Observation",
    "ReportedEvent",
    "Scenario",
    "Verdict",
    "judge",
    "load_scenario",
    "load_scenarios",
    "read_event",
    "read_observations",
]
