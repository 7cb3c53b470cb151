"""What destinations get for the example events: one golden file to read, with a rule of each kind.

`python -m tests.golden.forwarders.test_alerts` writes it anew.
"""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from headwater.forwarders.alerts.rules import RULES
from headwater.testing.examples import BEGAN, EXAMPLES
from tests.kit.forwarders.alerts import DESTINATIONS, Rules, rule_file

pytestmark = pytest.mark.slow

FILE = Path(__file__).parent / "alerts.json"
SLACK = '[destinations.team]\ntype = "slack"\nurl = "http://127.0.0.1:1/hook"\n'
MORE = {
    "job-failed": "statements = true",
    "gap": 'text = "{reason}: {missed} events of {job} may be missing. {detail}"',
    "table-late": 'tables = ["lake.sales.*"]\nevery = "1 h"',
}


def text_of(folder: Path) -> str:
    rules = "".join(
        f'[[rules]]\nname = "{when} rule"\nwhen = "{when}"\nto = ["pager", "team"]\n{MORE.get(when, "")}\n'
        for when in RULES
    )
    ours = Rules(rule_file(folder, rules, DESTINATIONS + SLACK))
    events = sorted(EXAMPLES, key=lambda event: event.kind != "JobLineage")
    first = events[0].model_copy(update={"time": BEGAN})
    ours.see([first, *events[1:]], BEGAN + timedelta(minutes=1))
    ours.tick(BEGAN + timedelta(hours=3), BEGAN + timedelta(hours=3))
    sent = {name: ours.alerts(name) for name in ("pager", "team")}
    ours.store.close()
    return json.dumps(sent, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def test_destinations_get_what_the_golden_file_shows(tmp_path: Path) -> None:
    assert text_of(tmp_path) == FILE.read_text("utf-8")


def test_each_kind_of_rule_is_in_it() -> None:
    sent = json.loads(FILE.read_text("utf-8"))
    assert {each["when"] for each in sent["pager"]} == RULES.keys()
    assert len(sent["team"]) == len(sent["pager"])


if __name__ == "__main__":
    with TemporaryDirectory() as name:
        FILE.write_text(text_of(Path(name)), "utf-8")
