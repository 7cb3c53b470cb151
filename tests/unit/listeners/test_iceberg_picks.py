"""A snapshot that was picked by calling Iceberg's library, as the hook notes it: no statement says what it was."""

from __future__ import annotations

from typing import Any

import pytest

from headwater.events.identity.environment import Environment
from headwater.events.jobs import CommitKind, OverwriteScope, RangeStart, ReadMode
from headwater.events.redaction import Redactor
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.formats import installed
from headwater.listeners.capture.formats.iceberg.outside_commits import outside_commit

CONTEXT = CaptureContext(Environment(host="driver-1"), {}, Redactor(), installed())
PICKED: dict[str, Any] = {"snapshot": 52, "parent": 11, "branches": []}


def fact(*, operation: str = "append", source: str = "52", picked: dict[str, Any] | None = PICKED) -> dict[str, Any]:
    found = {
        "snapshot": 14,
        "parent": 13,
        "operation": operation,
        "location": "/lake/t",
        "main": True,
        "summary": {"source-snapshot-id": source},
        **({} if picked is None else {"picked": picked}),
    }
    return {"hook": "iceberg", "action": "committed", "found": found}


@pytest.mark.parametrize(
    ("operation", "replaced"), [("append", OverwriteScope.NOTHING), ("overwrite", OverwriteScope.PART)]
)
def test_it_is_made_from_the_changes_of_its_source(operation: str, replaced: OverwriteScope) -> None:
    """Iceberg picks an overwrite only if it replaced partitions."""
    found = outside_commit(fact(operation=operation), CONTEXT)
    assert found is not None
    (output,), (read,) = found.outputs, found.inputs or ()
    assert (output.snapshot, output.commit_kind, output.replaced) == (14, CommitKind.CHERRY_PICK, replaced)
    assert (read.snapshot, read.mode, read.since) == (52, ReadMode.CHANGES, RangeStart(snapshot=11))
    assert (read.branch, read.main, read.dataset) == (None, False, output.dataset)


def test_the_first_snapshot_is_a_state() -> None:
    found = outside_commit(fact(picked={"snapshot": 52, "parent": None, "branches": ["b"]}), CONTEXT)
    assert found is not None
    (read,) = found.inputs or ()
    assert (read.mode, read.since, read.branch) == (ReadMode.STATE, None, "b")


@pytest.mark.parametrize("source", ["52", "what I read of another table"])
def test_a_property_of_the_users_is_no_pick(source: str) -> None:
    """The table has no such snapshot: somebody gave a property this name."""
    found = outside_commit(fact(source=source, picked=None), CONTEXT)
    assert found is not None
    assert ([each.commit_kind for each in found.outputs], found.inputs) == ([CommitKind.APPEND], None)
