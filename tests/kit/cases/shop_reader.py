"""A reader of the order shop in a process of its own, and what is wrong with what it saw.

    python -m tests.kit.cases.shop_reader DATABASE STORE LEAST

It joins tables under `spark.headwater.read.consistent` until standard input ends and it has asked so often, and writes
each answer as a line of JSON to standard output.
"""

from __future__ import annotations

import json
import random
import statistics
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from tests.kit.cases.order_shop import CHAIN, OrderBook
from tests.kit.seeds import seed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEY: Final = "spark.headwater.read.consistent"
SETS: Final[Sequence[tuple[str, ...]]] = (
    CHAIN,
    ("details", "revenue"),
    ("revenue", "top10"),
    ("orders", "details"),
    ("details", "top10"),
    ("orders", "revenue"),
)
SESSION_QUERIES: Final = 6
"""A session asks so many queries at most: its reads never go back, so that a long one mostly waits for the jobs."""
PLAIN_EVERY: Final = 5
"""How often the same is asked in a session that doesn't read consistently."""
MEASURES: Final[Mapping[str, str]] = {
    "orders": "count(*) AS c, sum(amount) AS s",
    "details": "count(*) AS c, sum(total) AS s",
    "revenue": "max(orders) AS c, sum(total) AS s",
    "top10": "count(*) AS c, sum(total) AS s",
}
"""What is asked of each table: a count and a sum, which say after how many orders it was made, and in which world."""
Answer = dict[str, tuple[int, int]]


@dataclass(frozen=True)
class State:
    """After how many commits to the orders a table was made, and whether without the error."""

    commits: int
    right: bool


@dataclass
class SeenByReader:
    """What the answers say, beside what they have to be."""

    queries: int = 0
    mixtures: list[Answer] = field(default_factory=list)
    """Answers whose tables weren't made from the same orders, or hold what they never should."""
    backward: list[tuple[Answer, State, State]] = field(default_factory=list)
    """Answers with fewer orders than the same question had before, or with the error when it was gone."""
    errors: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    worlds: Counter[str] = field(default_factory=Counter)
    """How many answers had the error, how many had none any more, and how many were of a time before it."""

    @property
    def latency(self) -> tuple[float, float]:
        """Return the median and the 99th percentile in seconds."""
        quantiles = statistics.quantiles(self.seconds, n=100)
        return quantiles[49], quantiles[98]


def judge(lines: Iterable[str], book: OrderBook, commits: int, *, plain: bool = False) -> SeenByReader:
    """Compare answers with what the tables hold after up to so many commits to the orders: those that were read
    consistently, or the `plain` ones."""
    known = _known_states(book, commits)
    found, before = SeenByReader(), dict[tuple[str, ...], State]()
    for line in lines:
        said = json.loads(line)
        if said.get("plain", False) != plain:
            continue
        if "error" in said:
            found.errors[said["error"]] += 1
            continue
        answer: Answer = {table: tuple(value) for table, value in said["answer"].items()}
        found.queries += 1
        found.seconds.append(said["seconds"])
        states = set.intersection(*(known[table].get(value, set()) for table, value in answer.items()))
        if not states:
            found.mixtures.append(answer)
            continue
        # Before the error both worlds are one, and an answer is of both.
        state = min(states, key=lambda each: (each.commits, each.right))
        found.worlds["before the error" if len(states) > 1 else "without it" if state.right else "with it"] += 1
        last = before.setdefault(tuple(answer), state)
        if (state.commits, state.right) < (last.commits, last.right) or (last.right and not state.right):
            found.backward.append((answer, last, state))
        before[tuple(answer)] = state
    return found


def _known_states(book: OrderBook, commits: int) -> dict[str, dict[tuple[int, int], set[State]]]:
    known: dict[str, dict[tuple[int, int], set[State]]] = {table: defaultdict(set) for table in CHAIN}
    for number in range(1, commits + 1):
        for right in (True, False):
            rows = book.rows(number, right=right)
            state = State(number, right)
            for table in ("orders", "details", "top10"):
                known[table][len(rows[table]), sum(row[-1] for row in rows[table])].add(state)
            [(total, orders)] = rows["revenue"]
            known["revenue"][orders, total].add(state)
    return known


def query_of(database: str, tables: Sequence[str]) -> str:
    return " UNION ALL ".join(f"SELECT '{table}' AS t, {MEASURES[table]} FROM {database}.{table}" for table in tables)


def aligned_session(spark: SparkSession) -> SparkSession:
    """Return a session that reads consistently: it waits where no versions belong together."""
    session = spark.newSession()
    session.sql(f"SET {KEY} = true")
    session.sql(f"SET {KEY}.otherwise = wait 60s")
    return session


def ask(session: SparkSession, database: str, tables: Sequence[str]) -> dict[str, Any]:
    """Return what a query of these tables says, or with which error it ended."""
    began = time.perf_counter()
    try:
        rows = session.sql(query_of(database, tables)).collect()
    except Exception as e:  # noqa: BLE001 - what a statement says is what is counted
        return {"error": str(e).partition("\n")[0][:300], "tables": tables}
    found = {row[0]: [row[1], row[2]] for row in rows}
    return {"answer": {table: found[table] for table in tables}, "seconds": time.perf_counter() - began}


def main(arguments: Sequence[str]) -> None:
    from pyspark.sql import SparkSession

    database, store, least = arguments[0], arguments[1], int(arguments[2])
    ended = threading.Event()

    def wait_for_end() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=wait_for_end, daemon=True).start()
    settings = {"spark.app.name": "reader", KEY: "false", f"{KEY}.store": store}
    builder: Any = SparkSession.builder
    spark = builder.config(map=settings).getOrCreate()
    chance, left, session = random.Random(seed()), 0, spark
    asked = 0
    while not ended.is_set() or asked < least:
        if not left:
            session, left = aligned_session(spark), chance.randint(1, SESSION_QUERIES)
        tables = chance.choice(SETS)
        said = ask(session, database, tables)
        asked, left = asked + ("answer" in said), left - 1
        print(json.dumps(said), flush=True)
        if not asked % PLAIN_EVERY:
            print(json.dumps({**ask(spark, database, tables), "plain": True}), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1:])
