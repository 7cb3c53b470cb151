"""A stream with state is corrected incrementally, while production goes on: its mirror's rows, the switch, and after.

Totals of orders are worked out by hand. Order 4 costs a hundred times too much; it came by a batch that read a right
order, too, so that the mirror of the orders begins before that one.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.errors import ConfigurationError
from headwater.versions.correction.execution import CorrectionError, Corrector, correction
from headwater.versions.correction.switching import streams_behind
from tests.kit.spark.driver import Driver, shared_driver_fixture
from tests.kit.stores import open_new_store
from tests.kit.versions.branches import EXTENSIONS
from tests.kit.versions.corrected_stream import Shop
from tests.kit.versions.memory_correction import KilledError

pytestmark = [
    pytest.mark.spark,
    pytest.mark.long,
    pytest.mark.needs("iceberg", "delta"),
    pytest.mark.xdist_group("branches"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # pyspark's, of `collect`
]

driver = shared_driver_fixture(EXTENSIONS)


def die(*_: str) -> None:
    raise KilledError


@pytest.fixture
def shop(driver: Driver, tmp_path: Path) -> Iterator[Shop]:
    with open_new_store(str(tmp_path / "store.db")) as store:
        found = Shop(driver, store)
        found.produce("(1, 'a', 10), (2, 'b', 20)")
        found.produce("(3, 'a', 30)")
        found.produce("(6, 'b', 60)", "(4, 'b', 4000)")
        found.produce("(5, 'a', 50)")
        yield found


def test_a_stream_with_state_goes_on_behind_its_last_right_batch_and_after_the_switch(shop: Shop) -> None:
    """It finds rows that are read twice or not at all: at the cut, in a second run, and by the switch."""
    assert shop.sums() == {"a": 90, "b": 4080}
    corrector = shop.begin()
    with pytest.raises(ConfigurationError, match=r"a stream reads .*\.orders, and would end at a change of its rows"):
        shop.correct(corrector, f"UPDATE {shop.orders} SET price = 40 WHERE id = 4")
    shop.correct(corrector, f"INSERT INTO {shop.orders} SELECT id, item, CAST(price / 100 AS INT) FROM wrong_rows")
    shop.produce("(7, 'a', 70)")
    corrector.run(shop.run_command, shop.plan)
    assert (shop.mirrored(corrector), shop.sums()) == ({"a": 160, "b": 120}, {"a": 160, "b": 4080})

    shop.produce("(8, 'b', 80)")
    shop.dies = True
    with pytest.raises(KilledError):
        corrector.run(shop.run_command, shop.plan)
    again = Corrector(shop.store, corrector.load().name, shop.tables)
    again.run(shop.run_command, shop.plan)
    assert shop.mirrored(corrector) == {"a": 160, "b": 200}
    assert shop.rows_read == [4, 1, 0], "orders 6, 4, 5 and 7, and then 8: what came before is in the state"

    with pytest.raises(KilledError):
        shop.switcher(corrector, die).switch()
    shop.switcher(corrector).switch()
    assert shop.sums() == {"a": 160, "b": 200}
    [checkpoint] = streams_behind(corrector.load()).values()
    shop.produce("(9, 'a', 90)", checkpoint=checkpoint)
    assert shop.sums() == {"a": 250, "b": 200}
    there = sorted(path.name for path in shop.case.root.iterdir() if path.name.startswith("checkpoint"))
    assert there == [shop.case.checkpoint().name, Path(checkpoint).name]


@pytest.mark.long
def test_a_mirror_whose_rows_were_changed_is_refused_before_its_stream_runs(shop: Shop) -> None:
    """A user's own session can change rows; the stream would die of that, and say nothing of what to do."""
    corrector = shop.begin()
    with correction(shop.driver.spark, shop.store, corrector.load().name):
        shop.driver.run(f"INSERT INTO {shop.orders} VALUES (4, 'b', 40)", f"DELETE FROM {shop.orders} WHERE id = 3")
    with pytest.raises(CorrectionError, match="ends at a change of rows: abort"):
        corrector.run(shop.run_command, shop.plan)
    assert shop.rows_read == []
    corrector.abort()
    assert [path.name for path in shop.case.root.iterdir() if "correction" in path.name] == []
