"""Every transaction writes rows in one order: two that meet can't deadlock."""

from __future__ import annotations

from headwater.lineage.bulk import pack_rows
from headwater.lineage.mapping import map_event
from headwater.lineage.rows import KINDS
from headwater.lineage.sql.upsert import ORDER
from headwater.testing.examples import COMMITTED, EXAMPLES

NUMBERS = (5, 2, 300, 70_000, 2**40, 7, 1)


def test_rows_are_sorted_by_their_tables_primary_key() -> None:
    events = (
        COMMITTED.model_copy(update={"barrier": barrier, "sequence": n, "family_sequence": n})
        for n, barrier in enumerate(NUMBERS, 1)
    )
    for packed in pack_rows(row for event in events for row in map_event(event)):
        places = {"id": 0, **{column.name: number for number, column in enumerate(packed.kind.key, 1)}}
        keys = [tuple(row[places[name]] for name in packed.kind.primary_key) for row in packed.rows]
        assert keys == sorted(keys), packed.name
        if packed.name == "reads":
            assert [key[0] for key in keys][:: len(keys) // len(NUMBERS)] == sorted(NUMBERS)


def test_kinds_are_in_one_order_whatever_comes_first() -> None:
    rows = [row for event in EXAMPLES for row in map_event(event)]
    names = [each.name for each in pack_rows(rows)]
    assert names == [each.name for each in pack_rows(reversed(rows))]
    assert names == sorted(names, key=ORDER.__getitem__)
    assert set(names) <= {kind.name for kind in KINDS}
