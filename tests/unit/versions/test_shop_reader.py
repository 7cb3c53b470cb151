"""The judge of the benchmark of a corrected warehouse sees what it has to see; without that its figures say nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence

from tests.kit.cases.order_shop import CHAIN, WRONG_COMMIT, OrderBook
from tests.kit.cases.shop_reader import judge

BOOK = OrderBook(commit_rows=10)


def answer(commits: int, *, right: bool, tables: Sequence[str] = CHAIN) -> dict[str, tuple[int, int]]:
    """Return what a query says of tables that were made after so many commits to the orders."""
    rows = BOOK.rows(commits, right=right)
    sums = {table: (len(rows[table]), sum(row[-1] for row in rows[table])) for table in ("orders", "details", "top10")}
    [(total, orders)] = rows["revenue"]
    return {table: {**sums, "revenue": (orders, total)}[table] for table in tables}


def judged(*answers: dict[str, tuple[int, int]]) -> tuple[int, int]:
    """Return how many mixtures there are, and how many totals that go back."""
    found = judge([json.dumps({"answer": each, "seconds": 0.1}) for each in answers], BOOK, 6)
    return len(found.mixtures), len(found.backward)


def test_a_correction_while_production_goes_on_is_neither_a_mixture_nor_a_step_back() -> None:
    early, wrong, later = (answer(n, right=False) for n in (1, WRONG_COMMIT, WRONG_COMMIT + 1))
    corrected, newest = (answer(n, right=True) for n in (WRONG_COMMIT + 1, WRONG_COMMIT + 2))
    assert judged(early, early, wrong, later, corrected, newest) == (0, 0)
    assert judged(early, wrong, answer(WRONG_COMMIT + 1, right=True, tables=("orders", "details")), wrong) == (0, 0)


def test_a_mixture_is_seen() -> None:
    old, new, later = answer(4, right=False), answer(4, right=True), answer(5, right=False)
    for table in CHAIN:
        assert judged({**old, table: new[table]}) == (1, 0)
        assert judged({**old, table: later[table]}) == (1, 0)
    assert judged({**old, "orders": (40, 1)}) == (1, 0)


def test_a_total_that_goes_back_is_seen() -> None:
    assert judged(answer(5, right=False), answer(4, right=False)) == (0, 1)
    assert judged(answer(5, right=False), answer(4, right=True)) == (0, 1)
    assert judged(answer(4, right=False), answer(4, right=True), answer(4, right=False)) == (0, 1)
    assert judged(answer(4, right=False), answer(4, right=True), answer(5, right=False)) == (0, 1)
