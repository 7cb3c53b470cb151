"""The demo, run as anybody runs it. What its page says is compared with the tables' own metadata, with the stream's
checkpoint, and with what was written down by hand from its scripts."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from headwater.cli.demo.scenario import QUESTIONS, STEPS
from headwater.cli.demo.workspace import find_requirements
from tests.kit.lineage.html_page import Read

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.spark]

SECONDS = 450
TUTORIAL = Path(__file__).parents[2] / "docs/tutorial-versions.md"
NAMES = (
    "Cup",
    "Kettle",
    "Lamp",
    "Notebook",
    "Pen",
    "Backpack",
    "Bottle",
    "Umbrella",
    "Chess set",
    "Dice",
    "Cards",
    "Puzzle",
)
ORDERS, PRODUCTS, DETAILS = "lake.ods.orders", "lake.ods.products", "lake.dwd.order_details"
REVENUE, TOP10 = "lake.dws.revenue_today", "lake.dws.top10"


@dataclass(frozen=True)
class Demo:
    place: Path
    out: str
    page: Read

    def metadata(self, table: str) -> dict[str, Any]:
        """As Iceberg wrote it last."""
        folder = self.place / "warehouse" / Path(*table.split(".")[1:]) / "metadata"
        newest = (folder / "version-hint.text").read_text().strip()
        found: dict[str, Any] = json.loads((folder / f"v{newest}.metadata.json").read_text())
        return found

    def snapshots(self, table: str) -> list[int]:
        """In the order of their making."""
        ordered = sorted(self.metadata(table)["snapshots"], key=lambda each: each["sequence-number"])
        return [each["snapshot-id"] for each in ordered]

    def made(self, table: str, snapshot: int) -> datetime:
        of = next(each for each in self.metadata(table)["snapshots"] if each["snapshot-id"] == snapshot)
        return datetime.fromtimestamp(of["timestamp-ms"] / 1000, timezone.utc)

    def newest_at(self, table: str, moment: datetime) -> int:
        """What somebody read who read the table then."""
        return [each for each in self.snapshots(table) if self.made(table, each) <= moment][-1]

    def operation(self, table: str, snapshot: int) -> str:
        """What Iceberg calls what was done, APPEND or OVERWRITE."""
        of = next(each for each in self.metadata(table)["snapshots"] if each["snapshot-id"] == snapshot)
        return str(of["summary"]["operation"]).upper()

    def defined(self, table: str) -> list[datetime]:
        """When the table was made, and when it got each of its later schemas."""
        folder = self.place / "warehouse" / Path(*table.split(".")[1:]) / "metadata"
        files = sorted(folder.glob("v*.metadata.json"), key=lambda each: int(re.sub(r"\D", "", each.name)))
        states = [json.loads(each.read_text()) for each in files]
        first_of = {state["current-schema-id"]: state["last-updated-ms"] for state in reversed(states)}
        return [datetime.fromtimestamp(each / 1000, timezone.utc) for each in sorted(first_of.values())]

    def reported(self, title: str) -> list[str]:
        """What stands below a title in the terminal."""
        (chapter,) = [each for each in self.out.split("\n\n") if title in each.splitlines()[0]]
        return chapter.splitlines()[1:]

    def rows(self, chapter: str) -> list[list[str]]:
        """The cells of a chapter's tables, without their heads."""
        rows: list[list[str]] = []
        within = ""
        for each in self.page.elements:
            within = each.attributes["id"] if each.tag == "section" else within
            if within == chapter and each.tag == "tr":
                rows.append([])
            elif within == chapter and each.tag == "td":
                rows[-1].append(each.text)
        return [row for row in rows if row]

    def chapter(self, name: str) -> str:
        return next(each.text for each in self.page.of("section") if each.attributes["id"] == name)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    place = tmp_path_factory.mktemp("demo") / "kept"
    command = [sys.executable, "-m", "headwater.cli", "demo", "--keep", str(place), "--uncorrected"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HEADWATER_")}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=SECONDS, stdin=subprocess.DEVNULL, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return Demo(place, done.stdout, Read((place / "lineage.html").read_text()))


def label(words: str) -> str:
    """Of what is said of a box or row, its name."""
    return re.split(r": |\. ", words)[0]


def short(table: str, snapshot: int) -> str:
    return f"{table.rpartition('.')[2]}@…{str(snapshot)[-5:]}"


def near(text: str, moment: datetime) -> bool:
    """A driver tells of it when it is done, which may take a machine that stands still a while."""
    return abs((datetime.fromisoformat(text.replace("Z", "+00:00")) - moment).total_seconds()) < 60


def batches(demo: Demo) -> list[tuple[str, int]]:
    """For each micro-batch what it read of the orders, by the offsets in the checkpoint, and what it made, by the
    numbers that Spark writes into the snapshots. Every snapshot of the orders has one file, of which an offset says how
    many were read."""
    orders = demo.snapshots(ORDERS)
    ends: list[int] = []
    for number in range(3):
        offset = json.loads((demo.place / f"checkpoint/offsets/{number}").read_text().splitlines()[-1])
        at = orders.index(offset["snapshot_id"])
        ends.append(at if offset["position"] == 1 else at - 1)
    assert ends == [0, 1, 2]
    read = [f"@{orders[0]}", *(f"@({one}..{other}]" for one, other in pairwise(orders))]
    made = {
        int(each["summary"]["spark.sql.streaming.epochId"]): each["snapshot-id"]
        for each in demo.metadata(DETAILS)["snapshots"]
    }
    return [(f"{ORDERS}{read[number]}", made[number]) for number in range(3)]


def test_the_chain_is_what_the_metadata_and_the_checkpoint_say(demo: Demo) -> None:
    (product,), (top10,), (_, revenue) = (demo.snapshots(each) for each in (PRODUCTS, TOP10, REVENUE))
    expected: set[tuple[str, str]] = set()
    before: list[int] = []
    for orders, details in batches(demo):
        expected |= {(orders, f"{DETAILS}@{details}"), (f"{PRODUCTS}@{product}", f"{DETAILS}@{details}")}
        expected |= {(f"{DETAILS}@{each}", f"{DETAILS}@{details}") for each in before}
        before.append(details)
    in_top10 = demo.newest_at(DETAILS, demo.made(TOP10, top10))
    in_revenue = demo.newest_at(DETAILS, demo.made(REVENUE, revenue))
    assert [in_top10, in_revenue] == before[1:]
    expected |= {(f"{DETAILS}@{in_top10}", f"{TOP10}@{top10}"), (f"{PRODUCTS}@{product}", f"{TOP10}@{top10}")}
    expected |= {(f"{DETAILS}@{in_revenue}", f"{REVENUE}@{revenue}")}
    assert {(label(one), label(other)) for one, other in demo.page.wires("s")} == expected
    rows = demo.rows("snapshots")
    assert {(source, target) for _, target, _, source in rows} == {
        (source, target) for source, target in expected if (source + target).count(DETAILS) != 2
    }
    writers = {DETAILS: "order_details", TOP10: f"daily_report.{TOP10}", REVENUE: f"daily_report.{REVENUE}"}
    for at, target, how, _ in rows:
        table, snapshot = target.split("@")
        assert how == f"{demo.operation(table, int(snapshot))} by {writers[table]}"
        assert near(at, demo.made(table, int(snapshot)))


def test_what_both_hold_is_counted(demo: Demo) -> None:
    (_, second), (_, third) = batches(demo)[1:]
    (top10,), (_, revenue) = demo.snapshots(TOP10), demo.snapshots(REVENUE)
    of_both = (
        f"{short(TOP10, top10)} was made from {short(DETAILS, second)}, which holds 2 commits of orders; "
        f"{short(REVENUE, revenue)} from {short(DETAILS, third)}, which holds 3."
    )
    assert of_both in demo.chapter("snapshots")
    assert of_both in demo.out
    tiles = [each.text for each in demo.page.of("a") if each.attributes["href"] == "#snapshots"]
    assert tiles == ["top10 holds2 commits of ordersrevenue_today holds 3: the two don't fit"]


def test_what_top10_lacks_is_marked(demo: Demo) -> None:
    marked = {label(each.attributes["aria-label"]) for each in demo.page.of("g", "row", "bad")}
    orders, details = batches(demo)[2]
    assert marked == {orders, f"{DETAILS}@{details}"}
    assert "They don't belong together" in demo.chapter("snapshots")


def test_those_that_belong_together_are_named(demo: Demo) -> None:
    """The report's first run made both out of one state, and only its second one added to revenue_today."""
    (first, _), (top10,) = demo.snapshots(REVENUE), demo.snapshots(TOP10)
    words = f"Those that do are {short(REVENUE, first)} and {short(TOP10, top10)}."
    assert words in demo.out
    assert words in demo.chapter("snapshots")


def test_the_same_sql_finds_the_share_of_one_state_when_it_reads_consistently(demo: Demo) -> None:
    """From the scripts, by hand: what was ordered before the release, and what after it."""
    prices = {n: Decimal("2.5") + n % 40 for n in range(1, 1001)} | {722: Decimal(4500)}
    before = [(1 + n * 7 % 12, 1 + n % 3, (1 + n % 3) * prices[n]) for n in range(1, 1001)]
    after = [(1 + n * 5 % 12, 1 + n % 4, (1 + n % 4) * Decimal(3 + n % 50)) for n in range(1001, 1501)]
    sold, made = Counter[str](), Counter[str]()
    for product, quantity, amount in before:
        sold[NAMES[product - 1]] += quantity
        made[NAMES[product - 1]] += amount  # type: ignore[assignment]
    best = sorted(sold, key=lambda each: (-sold[each], each))[:10]
    part, whole = sum(made[each] for each in best), sum(amount for _, _, amount in before)
    more = whole + sum(amount for _, _, amount in after)
    now, consistent = (f"{Decimal(100) * part / every:.1f} %" for every in (more, whole))
    assert now != consistent
    words = f"top10 has {now} of revenue_today as both are now, and {consistent} in snapshots that belong together."
    assert words in demo.out
    assert words in demo.chapter("snapshots")


def test_every_number_of_a_snapshot_is_one_of_the_tables(demo: Demo) -> None:
    known = {str(each) for table in (ORDERS, PRODUCTS, DETAILS, REVENUE, TOP10) for each in demo.snapshots(table)}
    shown = set(re.findall(r"\d{15,19}", (demo.place / "lineage.html").read_text()))
    assert shown
    assert shown <= known
    assert set(re.findall(r"@\(?(\d{15,19})", demo.out)) <= known


def test_tables_and_jobs(demo: Demo) -> None:
    """By hand, from the scripts: one box for each job, though the report makes two tables."""
    stream, report = "job order_details", "job daily_report"
    assert {(label(one), label(other)) for one, other in demo.page.wires("t")} == {
        *((ORDERS, stream), (PRODUCTS, stream), (stream, DETAILS)),
        *((DETAILS, report), (PRODUCTS, report), (report, TOP10), (report, REVENUE)),
    }
    failed = [each.attributes["aria-label"] for each in demo.page.of("g", "job", "bad")]
    assert [label(each) for each in failed] == [report]
    left = [each.attributes["aria-label"] for each in demo.page.of("g", "table", "bad")]
    assert [label(each).split(":")[0] for each in left] == [TOP10]


def test_what_a_change_of_the_price_breaks(demo: Demo) -> None:
    wires = {(label(one), label(other)) for one, other in demo.page.wires("c")}
    assert wires == {
        (f"{ORDERS}.price", f"{DETAILS}.amount"),
        (f"{DETAILS}.amount", f"{REVENUE}.revenue"),
        (f"{DETAILS}.amount", f"{TOP10}.revenue"),
    }
    assert demo.rows("price") == [
        [f"{DETAILS}.amount", "transformation", f"{ORDERS}.price", "order_details"],
        [f"{REVENUE}.revenue", "aggregation", f"{DETAILS}.amount", f"daily_report.{REVENUE}"],
        [f"{TOP10}.revenue", "aggregation", f"{DETAILS}.amount", f"daily_report.{TOP10}"],
    ]
    assert demo.reported("What a change of lake.ods.orders.price breaks") == [
        f"  {ORDERS}.price",
        f"  └─ {DETAILS}.amount (transformation)  by order_details",
        f"     ├─ {REVENUE}.revenue (aggregation)  by daily_report.{REVENUE}",
        f"     └─ {TOP10}.revenue (aggregation)  by daily_report.{TOP10}",
    ]
    assert "3 columns in 3 tables are computed from it, by daily_report and order_details" in demo.chapter("price")


def test_the_failure_is_spark_s(demo: Demo) -> None:
    assert "UNRESOLVED_COLUMN" in (demo.place / "logs/6-daily_report.log").read_text()
    chapter = demo.chapter("failure")
    assert "UNRESOLVED_COLUMN" in chapter
    assert "`category`" in chapter
    assert "It had written revenue_today; top10 was left as it was." in chapter
    assert "renamed column category to department" in chapter
    assert chapter.count("FAILED") == 1


def test_the_runs_are_the_acts(demo: Demo) -> None:
    """By hand, from the scripts; each began before what it committed, and ended behind that."""
    rows = demo.rows("failure")
    assert [(job, kind, status) for _, job, kind, _, status in rows] == [
        ("shop", "batch", "ENDED"),
        ("details", "batch", "ENDED"),
        ("order_details", "streaming", "FINISHED"),
        ("daily_report", "batch", "ENDED"),
        ("shop", "batch", "ENDED"),
        ("details", "batch", "ENDED"),
        ("order_details", "streaming", "FINISHED"),
        ("daily_report", "batch", "FAILED"),
        ("share_of_top10", "batch", "ENDED"),
        ("share_of_top10", "batch", "ENDED"),
    ]
    orders, details, revenue = (demo.snapshots(each) for each in (ORDERS, DETAILS, REVENUE))
    last = [(ORDERS, orders[1]), (DETAILS, details[1]), (DETAILS, details[1]), (TOP10, demo.snapshots(TOP10)[0])]
    last += [(ORDERS, orders[2]), (DETAILS, details[2]), (DETAILS, details[2]), (REVENUE, revenue[1])]
    starts = [datetime.fromisoformat(row[0].replace("Z", "+00:00")) for row in rows]
    for number, (row, committed) in enumerate(zip(rows[:8], last, strict=True)):
        at = demo.made(*committed)
        after = next((starts[later] for later in range(number + 1, 8) if last[later] != committed), starts[8])
        assert starts[number] <= at < after
        assert at < starts[number] + _span(row[3]) + timedelta(seconds=2)
        assert starts[number] + _span(row[3]) < after + timedelta(seconds=2)
    ended = re.search(r"daily_report FAILED at (\S+ \S+Z): AnalysisException: \[UNRESOLVED", demo.out)
    assert ended is not None
    failed = datetime.fromisoformat(ended[1].replace("Z", "+00:00"))
    assert demo.made(REVENUE, revenue[1]).replace(microsecond=0) <= failed <= starts[8]


def _span(text: str) -> timedelta:
    units = {"min": 60, "s": 1}
    parts = text.split()
    seconds = sum(int(number) * units[unit] for number, unit in zip(parts[::2], parts[1::2], strict=True))
    return timedelta(seconds=seconds)


def test_the_changes_are_those_of_the_schemas(demo: Demo) -> None:
    def columns(table: str, at: int) -> dict[str, str]:
        fields = demo.metadata(table)["schemas"][at]["fields"]
        return {each["name"]: each["type"] for each in fields}

    assert (columns(ORDERS, 0)["price"], columns(ORDERS, -1)["price"]) == ("decimal(10, 2)", "decimal(12, 2)")
    assert set(columns(ORDERS, -1)) - set(columns(ORDERS, 0)) == {"coupon"}
    assert set(columns(PRODUCTS, -1)) ^ set(columns(PRODUCTS, 0)) == {"category", "department"}
    chapter = demo.chapter("changes")
    for words in (
        "retyped column price to decimal(12,2)",
        "added column coupon",
        "renamed column category to department",
    ):
        assert words in chapter
    rows = demo.rows("changes")
    assert [each[1:3] for each in rows] == [
        *([ORDERS, "CreateTable"], [ORDERS, "AlterTable"], [ORDERS, "AlterTable"]),
        *([PRODUCTS, "CreateTable"], [PRODUCTS, "AlterTable"]),
        *([DETAILS, "CreateTable"], [REVENUE, "CreateTable"], [TOP10, "CreateTable"]),
    ]
    defined = [at for table in (ORDERS, PRODUCTS, DETAILS, REVENUE, TOP10) for at in demo.defined(table)]
    assert all(near(row[0], at) for row, at in zip(rows, defined, strict=True))
    alters = [f"  {at}  {table}: {change}" for at, table, what, change in rows if what == "AlterTable"]
    assert demo.reported("What was done to the tables") == alters


def test_all_of_it_is_there(demo: Demo) -> None:
    chapter = demo.chapter("complete")
    until = re.search(r"until (\S+ \S+Z)", chapter)
    assert until is not None
    last = max(demo.made(table, demo.snapshots(table)[-1]) for table in (ORDERS, DETAILS, REVENUE, TOP10))
    at = datetime.fromisoformat(until[1].replace("Z", "+00:00"))
    assert last.replace(microsecond=0) <= at
    assert at.timestamp() <= (demo.place / "lineage.html").stat().st_mtime
    assert "Gaps: none." in chapter
    assert "may lack" not in chapter


def test_the_commands_can_be_copied(demo: Demo, tmp_path: Path) -> None:
    commands = [each.text for each in demo.page.of("code") if " lineage.db" in each.text or "--store" in each.text]
    assert len(commands) == 4
    said = [
        subprocess.run(each, shell=True, cwd=tmp_path, capture_output=True, text=True, check=True).stdout  # noqa: S602
        for each in commands
    ]
    assert f"{DETAILS}@" in said[0]
    assert f"{TOP10}.revenue (aggregation)" in said[1]
    assert f"{TOP10} VERSION AS OF {demo.snapshots(TOP10)[0]}" in said[2]
    assert "OLDEST" in said[3]
    for each in commands:
        assert each in demo.out


def test_the_terminal_says_the_same(demo: Demo) -> None:
    assert "\x1b" not in demo.out
    for step in (*STEPS, *QUESTIONS):
        assert step.what in demo.out
        assert step.why in demo.out
    (first, one), (then, two), _ = batches(demo)
    (product,), (top10,) = demo.snapshots(PRODUCTS), demo.snapshots(TOP10)
    tree = [re.sub(r", 2\S+ \S+Z$", "", each) for each in demo.reported("through the whole chain")]
    assert tree == [
        f"  {TOP10}@{top10}  OVERWRITE by daily_report.{TOP10}",
        f"  ├─ {DETAILS}@{two}  APPEND by order_details",
        f"  │  ├─ {DETAILS}@{one}  APPEND by order_details",
        f"  │  │  ├─ {first}",
        f"  │  │  └─ {PRODUCTS}@{product}",
        f"  │  ├─ {then}",
        f"  │  └─ {PRODUCTS}@{product}",
        f"  └─ {PRODUCTS}@{product}",
    ]
    assert "They don't belong together" in demo.out
    assert "daily_report FAILED" in demo.out
    assert (demo.place / "lineage.html").as_uri() in demo.out


@dataclass(frozen=True)
class Said:
    command: str
    code: int
    out: str


@pytest.fixture(scope="module")
def tutorial(demo: Demo) -> list[Said]:
    """The tutorial's own script and commands, in the demo's directory, at the snapshots that are there."""
    text = TUTORIAL.read_text()
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    (script,) = [content for kind, content in blocks if kind == "python"]
    (demo.place / "by_product.py").write_text(script)
    (example,) = set(re.findall(r"top10@(\d+) --run", text))
    typed = "".join(content for kind, content in blocks[1:] if not kind).replace("\\\n", " ")
    typed = typed.replace(example, str(demo.snapshots(TOP10)[0]))
    commands = [each.removeprefix("$ ") for each in typed.splitlines() if each.startswith(("$ ", "sed "))]
    found = find_requirements()
    own = {"JAVA_HOME": str(found.java_home), "SPARK_HOME": str(found.spark), "SPARK_LOCAL_IP": "127.0.0.1"}
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, **own, "PATH": path, "HEADWATER_STORE": "sqlite:///lineage.db"}
    return [_said(each, demo.place, environment) for each in commands]


def _said(command: str, place: Path, environment: dict[str, str]) -> Said:
    done = subprocess.run(  # noqa: S602 - as somebody types it
        command,
        shell=True,
        cwd=place,
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    return Said(command, done.returncode, done.stdout + (done.stderr if done.returncode > 1 else ""))


def test_the_tutorial_says_what_is_printed(tutorial: list[Said]) -> None:
    now, check, align, consistent, job, versions, same, changed, different = tutorial
    assert (now.code, now.out.strip()) == (0, "share: 58.7 %")
    assert (check.code, "belong together  no" in check.out) == (1, True), check
    assert (align.code, align.out.count("VERSION AS OF")) == (0, 2), align
    assert (consistent.code, consistent.out.strip()) == (0, "share: 93.9 %")
    assert (job.code, job.out.strip()) == (0, "data version 1: 500 orders")
    assert (versions.code, f"{DETAILS}@" in versions.out) == (0, True), versions
    assert (same.code, "verdict   equal" in same.out) == (0, True), same
    assert changed.code == 0
    assert different.code == 1, different
    for words in ("different: 10 rows different", "product=Backpack revenue 5869.50 705.00"):
        assert words in " ".join(different.out.split())


def test_the_scripts_know_nothing_of_headwater(demo: Demo) -> None:
    scripts = sorted((demo.place / "jobs").iterdir())
    assert len(scripts) == 8
    assert not [each for each in scripts if "headwater" in each.read_text()]
