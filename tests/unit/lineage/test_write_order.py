"""Every transaction writes rows in one order, in whatever form they are: two that meet can't deadlock."""

from __future__ import annotations

import pytest

from headwater.lineage.bulk.packing import group_by_kind
from headwater.lineage.mapping import map_event
from headwater.lineage.rows import KINDS, RowKind
from headwater.lineage.rows.copy_format import decode_copy_row
from headwater.testing.examples import COMMITTED

NUMBERS = (5, 2, 300, 70_000, 2**40, 7, 1)


def test_rows_are_in_the_same_order_in_both_forms() -> None:
    events = (
        COMMITTED.model_copy(update={"barrier": barrier, "sequence": n, "family_sequence": n})
        for n, barrier in enumerate(NUMBERS, 1)
    )
    piles = group_by_kind(row for event in events for row in map_event(event))
    for pile in piles:
        ordered = pile.ordered()
        copied = [decode_copy_row(pile.kind, data).id for data in pile.ordered_copies()]
        assert copied == [each[0] for each in ordered], pile.kind.name
    reads = next(pile for pile in piles if pile.kind.name == "reads")
    barriers = [each[1] for each in reads.ordered()]
    assert barriers == sorted(barriers)
    assert set(barriers) == set(NUMBERS)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.partition], ids=lambda kind: kind.name)
def test_the_key_begins_with_what_the_primary_key_begins_with(kind: RowKind) -> None:
    """Rows in COPY's format are sorted by the place of these columns."""
    before_id = kind.primary_key[:-1]
    assert tuple(column.name for column in kind.key)[: len(before_id)] == before_id
