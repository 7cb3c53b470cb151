"""What taking out secrets and literals costs: microseconds per text, clean and not, new and seen before."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from headwater.events.redaction import Redactor, canonical_text, mask_literals
from headwater.testing.examples import COMMITTED
from tests.benchmarks.harness import Aims

CALLS = 2_000
ROUNDS = 7
ERROR = "Caused by: java.lang.RuntimeException: no such table\n\tat org.apache.spark.sql.Foo.bar(Foo.scala:12)\n" * 20
QUERY = "SELECT a.x, b.y + 1 AS z FROM db.t1 a JOIN t2 b ON a.id = b.id WHERE a.d IN (1, 2) AND b.e > DATE '2024-01-01'"


@dataclass(frozen=True)
class Measured:
    name: str
    call: Callable[[], object]
    at_most: float
    """Microseconds, with room for a slower machine."""

    def microseconds(self) -> float:
        return min(self._round() for _ in range(ROUNDS)) * 1e6

    def _round(self) -> float:
        started = time.perf_counter()
        for _ in range(CALLS):
            self.call()
        return (time.perf_counter() - started) / CALLS


def new(text: str) -> Callable[[], str]:
    """The text as if never seen before."""
    redactor = Redactor()

    def call() -> str:
        redactor.forget()
        return redactor.text(text)

    return call


def seen(text: str) -> Callable[[], str]:
    redactor = Redactor()
    return lambda: redactor.text(text)


def main() -> int:
    """Print the table; 1 if a limit is passed."""
    redactor = Redactor()
    table = [
        Measured("a short name, new", new("orders"), 3),
        Measured("a table's full name, new", new("hive_metastore.sales.orders"), 15),
        Measured("a table's full name, seen", seen("hive_metastore.sales.orders"), 0.5),
        Measured("a path, new", new("s3://bucket/warehouse/sales.db/orders"), 30),
        Measured(f"a clean error of {len(ERROR)} characters, new", new(ERROR), 700),
        Measured("a JDBC URL with a password", seen("jdbc:postgresql://h/d?user=joe&password=hunter22"), 300),
        Measured("a Committed (3 inputs, 1 output), seen", lambda: redactor.redact(COMMITTED), 200),
        Measured(f"literals of {len(QUERY)} characters of SQL", lambda: mask_literals(QUERY), 2_000),
        Measured("its canonical text", lambda: canonical_text(QUERY), 3_000),
    ]
    aims = Aims()
    for measured in table:
        aims.at_most(measured.name, measured.microseconds(), measured.at_most, "µs")
    return aims.report()


if __name__ == "__main__":
    sys.exit(main())
