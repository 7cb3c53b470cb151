"""`python -m tests.benchmarks.stream_correction --commits 40 --rows 1000`: what a correction of a stream reads.

Orders come by commits of so many rows, and the last but three is wrong. The stream goes on behind its last right batch;
in full a batch statement does its work anew. Rows are counted by Spark.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from headwater import local
from headwater.events import Committed
from headwater.versions.correction.execution import correction
from tests.kit.spark.driver import DELTA, driver_with, of
from tests.kit.stores import open_new_store
from tests.kit.versions.corrected_stream import Shop


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commits", type=int, default=40)
    parser.add_argument("--rows", type=int, default=1000)
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as directory,
        open_new_store(str(Path(directory) / "store.db")) as store,
        driver_with(local.java().home, DELTA) as driver,
    ):
        shop = Shop(driver, store, wrong=given.commits - 3)

        def orders(number: int) -> str:
            rows = range(number * given.rows, (number + 1) * given.rows)
            return ", ".join(f"({each}, 'item {each % 10}', {each % 97})" for each in rows)

        for number in range(given.commits):
            shop.produce(orders(number))
        corrector = shop.begin()
        shop.correct(corrector, f"INSERT INTO {shop.orders} SELECT id, item, price FROM wrong_rows")
        began = time.monotonic()
        corrector.run(shop.run_command, shop.plan)
        print(f"incremental: the stream read {sum(shop.rows_read)} rows, {time.monotonic() - began:.1f} s")
        began = time.monotonic()
        sums = f"SELECT item, sum(price) AS total FROM {shop.orders} GROUP BY item"
        with correction(driver.spark, store, corrector.load().name):
            events = driver.events_of(f"INSERT OVERWRITE {shop.totals} {sums}")
        read = sum(each.rows or 0 for event in of(Committed, events) for each in event.inputs)
        print(f"full: a batch statement read {read} rows, {time.monotonic() - began:.1f} s")


if __name__ == "__main__":
    main()
