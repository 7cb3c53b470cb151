"""The conformance suite's score of our OpenLineage forwarder beside that of OpenLineage's own agent for Spark:
python -m tests.benchmarks.conformance [SCENARIO …]

Each plays all scenarios on the Spark that is installed, in a driver of its own. `--facts` prints what wasn't seen.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from headwater import local
from headwater.conformance import Finding, Verdict, load_scenarios
from headwater.conformance.verdicts import Score, scores
from tests.benchmarks.harness import Aims
from tests.kit.conformance.runs import AGENT, play_with_agent, play_with_headwater
from tests.kit.spark.versions import SPARK

HEAD = ("facts", "seen", "missed", "wrong", "silent")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scenarios", nargs="*", choices=[[], *load_scenarios()], metavar="SCENARIO")
    parser.add_argument("--facts", action="store_true", help="print what wasn't seen")
    given = parser.parse_args()
    java_home = local.java().home
    found: dict[str, list[Finding]] = {}
    with tempfile.TemporaryDirectory(prefix="headwater-conformance-") as folder:
        for name, play in (("headwater", play_with_headwater), ("agent", play_with_agent)):
            place = Path(folder) / name
            place.mkdir()
            found[name] = play(place, java_home, given.scenarios).findings()
    _print(found, with_facts=given.facts)
    aims = Aims()
    wrong = sum(each.verdict is Verdict.WRONG for each in found["headwater"])
    aims.at_most("wrong facts of headwater's forwarder", wrong, 0)
    return aims.report()


def _print(found: dict[str, list[Finding]], *, with_facts: bool) -> None:
    print(f"Spark {SPARK}; the agent is {AGENT}")
    ours, agents = ({score.scenario: score for score in scores(found[name])} for name in ("headwater", "agent"))
    print(f"{'':<20}{'headwater':>31}{'agent':>35}")
    print(f"{'':<20}{''.join(f'{word:>8}' for word in HEAD)}{''.join(f'{word:>8}' for word in HEAD[1:])}")
    for scenario, score in ours.items():
        print(f"{scenario:<20}{_cells(score)}{_cells(agents[scenario])[8:]}")
    for name, findings in found.items() if with_facts else ():
        print(f"\n{name}")
        for each in findings:
            if each.verdict is not Verdict.SEEN:
                print(f"  {each.verdict.value:<7} {each.scenario} {each.step}: {each.fact}: {each.reason}")


def _cells(score: Score) -> str:
    return "".join(f"{number:>8}" for number in (score.facts, score.seen, score.missed, score.wrong, score.silent))


if __name__ == "__main__":
    sys.exit(main())
