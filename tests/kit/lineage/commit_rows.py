"""Rows of commits, for tests of the store itself, that no event has made."""

from __future__ import annotations

from headwater.lineage.rows import GroupValues, Row, RowTimes
from headwater.lineage.rows import tables as t
from headwater.lineage.rows.values import Value


def commit_row(barrier: int, job: str, **facts: Value) -> Row:
    """Return a commit of which these facts are known, by their columns."""
    (group,) = t.COMMIT.groups
    values = tuple(facts.pop(column.name, None) for column in group.columns)
    assert not facts, f"a commit has no {facts}"
    key = (barrier, b"i" * 16, "default", job)
    return Row.of(t.COMMIT, key, times=RowTimes(7, 7), groups=(GroupValues(b"s" * 33, values),))
