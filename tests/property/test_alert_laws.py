"""Alerts are those of the events, in whatever order, however often, and over however many restarts these come."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.events import Event
from headwater.events.changes import DropColumn, RenameColumn
from tests.kit.effort import examples
from tests.kit.forwarders.alerts import (
    NOON,
    Rules,
    altered,
    committed,
    dropped,
    failed,
    gap,
    lineage,
    rule_file,
    statement_failed,
)

pytestmark = pytest.mark.slow

RULES = "".join(
    f'[[rules]]\nname = "{when}"\nwhen = "{when}"\nlimit = 1000\nto = ["pager"]\n{more}\n'
    for when, more in (
        ("job-failed", "statements = true"),
        ("gap", ""),
        ("column-changed", ""),
        ("table-late", 'tables = ["*"]\nevery = "1 h"'),
    )
)
MINUTES = timedelta(minutes=1)
EVENTS: list[Event] = [
    *(failed(number, NOON + number * MINUTES) for number in range(1, 5)),
    statement_failed(5),
    gap(6),
    *(lineage(10 + number, f"job{number}", "amount", "id", at=NOON + number * MINUTES) for number in range(4)),
    altered(20, DropColumn(path=("amount",)), at=NOON + 2 * MINUTES),
    altered(21, RenameColumn(path=("id",), new_name="key"), at=NOON + 9 * MINUTES),
    dropped(22, at=NOON + 10 * MINUTES),
    *(committed(30 + number, NOON + number * MINUTES, f"t{number % 2}") for number in range(4)),
]
EXPECTED = {
    *(f"job-failed run {number}" for number in range(1, 5)),
    *("job-failed statement", "gap", "late t0", "late t1"),
    *(f"column-changed 20 job{number}" for number in range(3)),
    *(f"column-changed {event} job{number}" for event in (21, 22) for number in range(4)),
}
"""By hand: a change concerns the jobs that were seen reading it before."""


def name_of(alert: dict[str, object]) -> str:
    values = alert["values"]
    assert isinstance(values, dict)
    if alert["when"] == "job-failed":
        number = int(str(values["run"]).rpartition("-")[2], 16)
        return "job-failed statement" if number == 5 else f"job-failed run {number}"
    if alert["when"] == "table-late":
        return f"late {str(values['table']).rpartition('.')[2]}"
    if alert["when"] == "gap":
        return "gap"
    return f"column-changed {str(alert['event']).rpartition('-')[2]} {values['job']}"


@settings(max_examples=examples(60))
@given(st.data())
def test_order_copies_and_restarts_change_nothing(data: st.DataObject) -> None:
    order = data.draw(st.permutations(EVENTS))
    copies = data.draw(st.lists(st.sampled_from(EVENTS), max_size=10))
    restarts = data.draw(st.sets(st.integers(0, len(EVENTS) + 10), max_size=3))
    with TemporaryDirectory() as name:
        folder = Path(name)
        file = rule_file(folder, RULES)
        ours = Rules(file, folder / "state")
        for number, event in enumerate([*order, *copies]):
            if number in restarts:
                ours.store.close()
                ours = Rules(file, folder / "state")
            ours.see([event], NOON + 20 * MINUTES)
            ours.tick(NOON + 20 * MINUTES)
        for hours in (5, 6):
            ours.tick(NOON + hours * 60 * MINUTES, NOON + hours * 60 * MINUTES)
        found = [name_of(alert) for alert in ours.alerts()]
        ours.store.close()
    assert sorted(found) == sorted(EXPECTED)
