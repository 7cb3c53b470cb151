"""Aligned jobs are corrected on mirrors of real tables, and go on in production as if the error had never been.

The truth is another shop, in which the same happens without the error: its rows are those of the corrected one.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.lineage.store import Store
from headwater.versions.correction import CorrectionMode
from tests.kit.spark.driver import Driver, shared_driver_fixture
from tests.kit.stores import open_new_store
from tests.kit.versions.aligned_shop import WRONG, AlignedShop
from tests.kit.versions.branches import EXTENSIONS

pytestmark = [
    pytest.mark.spark,
    pytest.mark.long,
    pytest.mark.needs("iceberg", "delta"),
    pytest.mark.xdist_group("branches"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # pyspark's, of `collect`
]

driver = shared_driver_fixture(EXTENSIONS)
SAMPLE = ["iceberg"]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_new_store(str(tmp_path / "store.db")) as opened:
        yield opened


def two_shops(driver: Driver, form: str, place: Path, store: Store) -> tuple[AlignedShop, ...]:
    """The shop that is corrected, and that of the truth."""
    return tuple(AlignedShop(driver, form, place, store) for _ in range(2))


@pytest.fixture(params=SAMPLE)
def shops(request: pytest.FixtureRequest, driver: Driver, tmp_path: Path, store: Store) -> tuple[AlignedShop, ...]:
    return two_shops(driver, request.param, tmp_path, store)


def begin(shop: AlignedShop, amount: int) -> int:
    """Let the shop have three orders, of which the second may be wrong, and return the snapshot of that one."""
    shop.order(1, 1, 3)
    shop.run_jobs()
    shop.order(2, 2, amount)
    snapshot = shop.head("orders")
    shop.run_jobs()
    shop.reprice(1, 6)
    shop.order(3, 1, 1)
    shop.run_jobs()
    return snapshot


def go_on(shop: AlignedShop, *orders: int) -> None:
    for order in orders:
        shop.reprice(2, 10 + order)
        shop.order(order, 2, 1)
        shop.run_jobs()


RIGHT = "INSERT OVERWRITE {db}.orders SELECT id, product, IF(id = 2, 4, amount) AS amount FROM {db}.orders"
"""Each format has it."""


def test_production_goes_on_behind_a_switch_as_if_the_error_had_never_been(shops: tuple[AlignedShop, ...]) -> None:
    """Orders come before the correction, while it is open, until the switch and behind it; prices change in between, so
    that a barrier which is left out, played twice or played on other data versions shows in the rows. Production's job
    runs during the switch, stands at the fence, and goes on by itself; a commit that no data version has yet is read by
    the mirrors' jobs alone."""
    shop, truth = shops
    begin(truth, 4)
    snapshot = begin(shop, WRONG)
    wrong = shop.rows()
    corrector = shop.begin(snapshot, CorrectionMode.INCREMENTAL)
    name = corrector.load().name
    shop.correct(name, RIGHT)
    shop.calls.clear()
    shop.run(corrector)
    assert shop.calls == [("details", 2, 1), ("details", 3, 1), ("total", 3, 2)]
    assert (shop.rows_of_mirrors(name), shop.rows()) == (truth.rows(), wrong)
    for each in shops:
        go_on(each, 4)
    shop.calls.clear()
    shop.run(corrector)
    assert shop.calls == [("details", 4, 1), ("total", 4, 1)]  # what was played stays
    assert shop.rows_of_mirrors(name) == truth.rows()
    shop.calls.clear()
    shop.meanwhile = lambda: shop.order(5, 1, 2)
    with shop.running("details"):
        switched = shop.switch(name)
        assert shop.calls == [("details", 5, 1), ("total", 5, 1)]
        assert switched == {table: shop.head(table) for table in ("orders", "details", "total")}
        truth.order(5, 1, 2)
        truth.run_jobs()
        assert shop.rows() == truth.rows()
        shop.order(6, 2, 1)
        shop.wait_until_done("details", 6)
    shop.run_job("total")
    truth.order(6, 2, 1)
    truth.run_jobs()
    assert shop.calls[2:] == [("details", 6, 1), ("total", 6, 1)]
    assert shop.rows() == truth.rows()


@pytest.mark.long
@pytest.mark.needs("paimon")
def test_production_goes_on_behind_a_switch_of_paimon(driver: Driver, tmp_path: Path, store: Store) -> None:
    """There each commit to the orders may have changed rows, so none comes between the error and the switch; and the
    switched tables' snapshots aren't those of the mirrors."""
    shop, truth = two_shops(driver, "paimon", tmp_path, store)
    for each, amount in ((truth, 4), (shop, WRONG)):
        each.order(1, 1, 3)
        each.run_jobs()
        each.order(2, 2, amount)
        each.run_jobs()
        each.reprice(2, 8)
        each.run_jobs()
    corrector = shop.begin(2, CorrectionMode.INCREMENTAL)
    name = corrector.load().name
    shop.correct(name, RIGHT)
    shop.calls.clear()
    shop.run(corrector)
    assert [(job, new) for job, _, new in shop.calls] == [("details", 1), ("details", 0), ("total", 1)]
    assert shop.rows_of_mirrors(name) == truth.rows()
    shop.calls.clear()
    with shop.running("details"):
        shop.switch(name)
        assert shop.rows() == truth.rows()
        shop.order(3, 1, 1)
        shop.wait_until_done("details", 5)
    shop.run_job("total")
    truth.order(3, 1, 1)
    truth.run_jobs()
    assert [(job, new) for job, _, new in shop.calls] == [("details", 1), ("total", 1)]
    found, right = shop.rows(), truth.rows()
    assert [row[:2] for row in found["details"]] == [row[:2] for row in right["details"]]
    assert (found["orders"], found["total"]) == (right["orders"], right["total"])


@pytest.mark.long
def test_a_second_correction_of_the_user_lets_jobs_begin_anew(shops: tuple[AlignedShop, ...]) -> None:
    """In full. He corrects after rows of production were taken over, so that no earlier state is right."""
    shop, truth = shops
    begin(truth, 4)
    corrector = shop.begin(begin(shop, WRONG), CorrectionMode.FULL)
    name = corrector.load().name
    shop.correct(name, RIGHT.replace("4", "77"))
    shop.run(corrector)
    shop.correct(name, RIGHT)
    shop.calls.clear()
    shop.run(corrector)
    assert shop.calls == [("details", 3, 2), ("total", 3, 2)]
    found, right = shop.rows_of_mirrors(name), truth.rows()
    assert (found["orders"], [row[0] for row in found["details"]]) == (right["orders"], [1, 2, 3])
    shop.driver.events_of(lambda _: corrector.abort())
    shop.run_jobs()
    assert [path.name for path in shop.place.rglob("c-*")] == []
