"""The demo's last act, run as anybody runs it: what it says of a correction is compared with what was worked out by
hand from its scripts, and with the tables' own metadata."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from headwater.lineage import Lineage
from headwater.versions import check
from tests.kit.lineage.html_page import Read

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.spark]

SECONDS = 480
NAMES = (
    *("Cup", "Kettle", "Lamp", "Notebook", "Pen", "Backpack", "Bottle", "Umbrella"),
    *("Chess", "Dice", "Cards", "Puzzle"),
)
Sale = tuple[str, int, Decimal]


def sales(wrong_price: int | None = None) -> list[Sale]:
    """Product, pieces and amount of each order, from the scripts."""
    first = [(1 + n * 7 % 12, 1 + n % 3, Decimal("2.5") + n % 40) for n in range(1, 1001)]
    later = [(1 + n * 5 % 12, 1 + n % 4, Decimal(3 + n % 50)) for n in range(1001, 1501)]
    if wrong_price is not None:
        product, pieces, _ = first[721]
        first[721] = (product, pieces, Decimal(wrong_price))
    return [(NAMES[product - 1], pieces, pieces * price) for product, pieces, price in [*first, *later]]


def top10(orders: list[Sale]) -> list[list[str]]:
    """Product, pieces and revenue, as they are shown."""
    pieces, revenue = Counter[str](), Counter[str]()
    for product, number, amount in orders:
        pieces[product] += number
        revenue[product] += amount  # type: ignore[assignment]
    best = sorted(pieces, key=lambda each: (-pieces[each], each))[:10]
    return [[each, f"{pieces[each]:,}", f"{revenue[each]:,.2f}"] for each in best]


def total(orders: list[Sale]) -> str:
    return f"{sum(amount for _, _, amount in orders):,.2f}"


def metadata(place: Path, table: str) -> dict[str, Any]:
    folder = place / "warehouse" / Path(*table.split(".")) / "metadata"
    newest = (folder / "version-hint.text").read_text().strip()
    found: dict[str, Any] = json.loads((folder / f"v{newest}.metadata.json").read_text())
    return found


def test_a_wrong_price_is_corrected_and_no_reader_sees_half_of_it(tmp_path: Path) -> None:
    """The demo alone lets a process of its own join the tables all the while, and counts what that sees."""
    place = tmp_path / "kept"
    command = [sys.executable, "-m", "headwater.cli", "demo", "--keep", str(place)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HEADWATER_")}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=SECONDS, stdin=subprocess.DEVNULL, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (chapter,) = [each for each in done.stdout.split("\n\n") if each.startswith("A wrong price")]
    seen = re.search(r"in (\d+) queries, by consistent reads: (\d+) of", chapter)
    assert seen is not None
    assert int(seen[1]) > 1
    assert seen[2] == "0"
    before, after = sales(wrong_price=4500)[:1000], sales()
    assert f"It saw a revenue of {total(before)} first, and {total(after)} in the end." in chapter
    rows = {each[0]: each[1:] for each in (line.split() for line in done.stdout.splitlines()) if len(each) > 4}
    was, now = ({each[0]: each[1:] for each in top10(orders)} for orders in (before, after))
    for product in {*was, *now} - {"Chess"}:  # its name has two words
        assert rows[product] == [*was.get(product, ["-", "-"]), *now.get(product, ["-", "-"])]
    text = (place / "lineage.html").read_text()
    (shown,) = [each.text for each in Read(text).of("section") if each.attributes["id"] == "correction"]
    assert f"{seen[1]} queries, by consistent reads: 0 of" in shown
    heads = {table: metadata(place, table) for table in ("ods.orders", "dwd.order_details", "dws.top10")}
    assert [len(each["snapshot-log"]) for each in heads.values()] == [4, 4, 2]
    assert all(set(each["refs"]) == {"main"} for each in heads.values())
    with Lineage.open(f"sqlite:///{place / 'lineage.db'}") as lineage:
        assert check(lineage, ("lake.dws.revenue_today", "lake.dws.top10")).is_consistent is True
