"""How much longer `spark.stop()` takes with events for Kafka in the spool.

    python -m tests.benchmarks.publishing_ends [rounds]

A driver as users start it, once for each way and round: without headwater, with a broker that is there, with one that
is down, with one that accepts connections and never answers, and with an address that nothing comes back from.
"""

from __future__ import annotations

import socket
import statistics
import sys
import tempfile
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from headwater import local
from headwater.local.process import free_ports
from tests.benchmarks.harness import Aims
from tests.kit.drivers import Place

LIMIT: Final = 2.0
SCRIPT: Final = """
import time
from pyspark.sql import SparkSession
spark = SparkSession.builder.appName("ends").getOrCreate()
for number in range(5):
    spark.sql(f"CREATE TABLE t{number} USING parquet AS SELECT {number} AS id")
stopping = time.monotonic()
spark.stop()
print("SECONDS", time.monotonic() - stopping)
"""
AWAY: Final = "192.0.2.1:9092"
"""An address that is nobody's (RFC 5737). A network may refuse it at once."""


@contextmanager
def silent() -> Generator[str]:
    """Somebody who accepts connections and never answers."""
    held: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            with suppress(OSError):
                while True:
                    held.append(server.accept()[0])

        threading.Thread(target=accept, daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
    for each in held:
        each.close()


def stop_seconds(broker: str | None) -> float:
    """Of `spark.stop()`."""
    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder), local.java().home, enabled=broker is not None, patience=None)
        place.configure(
            {"spark.headwater.listeners": "kafka", "spark.headwater.kafka.bootstrap.servers": broker or "-"}
        )
        ended = place.python(SCRIPT)
        assert ended.code == 0, ended.err
        (line,) = [each for each in ended.out.splitlines() if each.startswith("SECONDS")]
        return float(line.split()[1])


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    with local.kafka() as kafka, silent() as mute:
        ways = {
            "without headwater": None,
            "a broker that is there": kafka.address,
            "a broker that is down": f"127.0.0.1:{free_ports(1)[0]}",
            "accepts and never answers": mute,
            "nothing comes back": AWAY,
        }
        taken: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(rounds):
            for name, broker in ways.items():
                taken[name].append(stop_seconds(broker))
    base = statistics.median(taken["without headwater"])
    sys.stdout.write(f"{'spark.stop(), median of ' + str(rounds):<36}{'s':>8}{'longer by':>12}\n")
    for name, each in taken.items():
        sys.stdout.write(f"{name:<36}{statistics.median(each):>8.2f}{statistics.median(each) - base:>12.2f}\n")
    aims = Aims()
    for name, each in taken.items():
        aims.at_most(f"longer by, {name}", statistics.median(each) - base, LIMIT, "s")
    return aims.report()


if __name__ == "__main__":
    sys.exit(main())
