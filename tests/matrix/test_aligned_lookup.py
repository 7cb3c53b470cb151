"""`batch.lookup` of aligned jobs: rows that are joined with a source as it is at the barrier, of which only what has
their keys is read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headwater.events import Committed
from headwater.events.jobs import ReadMode
from headwater.versions.aligned import AlignedBatch, AlignedQuery, aligned_query
from headwater.versions.aligned.checkpoints import Checkpoint
from headwater.versions.aligned.formats.protocol import session_settings
from headwater.versions.aligned.lookup import look_up
from tests.kit.spark.driver import DELTA, ICEBERG, Driver, edges, shared_driver_fixture, the, together

pytestmark = [pytest.mark.xdist_group("spark-iceberg-delta"), pytest.mark.needs("iceberg", "delta")]

driver = shared_driver_fixture(together(ICEBERG, DELTA), spark__databricks__delta__snapshotPartitions="1")
Step = Callable[[AlignedBatch], None]


class Shop:
    """Products in ten files of ten each, of which number n costs n, orders of two of them, and a sink."""

    def __init__(self, driver: Driver, table_format: str, place: Path) -> None:
        self.driver, self.place = driver, place
        catalog = "ice" if table_format == "iceberg" else "spark_catalog"
        self.db = f"{catalog}.{driver.database(catalog)}"
        self.orders, self.products, self.sink = (f"{self.db}.{name}" for name in ("orders", "products", "revenue"))
        driver.run(
            f"CREATE TABLE {self.orders} (id INT, product BIGINT) USING {table_format}",
            f"CREATE TABLE {self.products} (product BIGINT, price INT) USING {table_format}",
            f"CREATE TABLE {self.sink} (id INT, product BIGINT, price INT) USING {table_format}",
        )
        rows = driver.spark.range(100).selectExpr("id AS product", "CAST(id AS INT) AS price")
        rows.repartitionByRange(10, "product").writeTo(self.products).append()
        driver.run(f"INSERT INTO {self.orders} VALUES (1, 42), (2, 47), (3, NULL), (4, 1000)")

    def query(self, **more: Any) -> AlignedQuery:
        return aligned_query(
            self.db,
            {"orders": self.orders, "products": self.products},
            name="revenue",
            checkpoint=str(self.place / "checkpoint"),
            store=str(self.place / "store.db"),
            spark=self.driver.spark,
            **more,
        )

    def append(self, batch: AlignedBatch) -> None:
        joined = batch.lookup("products", batch.changes("orders"), on="product", how="left")
        batch.write(self.sink, joined.select("id", "product", "price").writeTo(self.sink).append)

    def written(self) -> list[tuple[Any, ...]]:
        self.driver.spark.catalog.refreshTable(self.sink)
        return sorted(tuple(row) for row in self.driver.spark.table(self.sink).collect())

    def begin_again(self) -> None:
        """Make the newest barrier one that wasn't committed, as a kill before the checkpoint leaves it."""
        checkpoint = Checkpoint(str(self.place / "checkpoint"))
        found = checkpoint.newest()
        assert found is not None
        checkpoint.write(type(found)(found.number, found.cut, found.before, is_committed=False, sinks=found.sinks))


@pytest.fixture(params=["iceberg", pytest.param("delta", marks=pytest.mark.long)])
def shop(request: pytest.FixtureRequest, driver: Driver, tmp_path: Path) -> Shop:
    return Shop(driver, request.param, tmp_path)


def test_a_lookup_joins_with_the_snapshot_of_its_barrier(shop: Shop) -> None:
    """It finds a lookup that reads the newest prices when its barrier runs again, that loses rows without a partner or
    a key, that reads files of other keys, and one that is captured as a read of another version or of no columns."""
    sums: list[int] = []

    def killed(batch: AlignedBatch) -> None:
        shop.driver.run(f"INSERT INTO {shop.products} VALUES (42, 4200), (1000, 7)")
        orders, products = batch.changes("orders"), batch.state("products")
        looked_up = batch.lookup("products", orders, on="product")
        for frame in (looked_up, orders.join(products, "product")):
            sums.extend((sum(row.price for row in frame.collect()), scanned(frame)))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        shop.query().run(killed)
    assert sums == [42 + 47, 4 + 10, 42 + 47, 4 + 100]
    first = shop.query()

    def one(batch: AlignedBatch) -> None:
        shop.append(batch)
        first.stop()

    events = shop.driver.events_of(lambda _: first.run(one))
    assert shop.written() == [(1, 42, 42), (2, 47, 47), (3, None, None), (4, 1000, None)]
    committed = the(Committed, events)
    checkpoint = Checkpoint(str(shop.place / "checkpoint")).newest()
    assert checkpoint is not None
    read = {each.table.table if each.table else "": (each.mode, each.snapshot) for each in committed.inputs}
    assert read == {
        name: (ReadMode.STATE, checkpoint.cut[f"{shop.db}.{name}"].snapshot) for name in ("orders", "products")
    }
    direct = {edge for edge in edges(shop.driver.lineage(committed)) if not edge.startswith("~")}
    assert direct == {"id <- orders.id", "product <- orders.product", "price <- products.price"}
    shop.begin_again()
    shop.query().run(one)
    assert len(shop.written()) == 4
    shop.driver.run(f"INSERT INTO {shop.orders} VALUES (5, 1000)")
    assert shop.query().run(shop.append) >= 1
    assert shop.written()[4:] == [(5, 1000, 7)]


@pytest.mark.long
def test_two_lookups_join_two_tables_that_grow(shop: Shop) -> None:
    """It finds rows that both lookups give, or none: an order may come before its product, after it, or with it."""

    def step(batch: AlignedBatch) -> None:
        new = batch.lookup("products", batch.changes("orders"), on="product")
        old = batch.lookup("orders", batch.changes("products"), on="product", history=True)
        both = new.unionByName(old)
        batch.write(shop.sink, both.select("id", "product", "price").writeTo(shop.sink).append)

    assert shop.query().run(step) == 1
    assert shop.written() == [(1, 42, 42), (2, 47, 47)]
    shop.driver.run(f"INSERT INTO {shop.orders} VALUES (5, 1000), (6, 7), (7, 2000)")
    shop.driver.run(f"INSERT INTO {shop.products} VALUES (1000, 1), (2000, 2), (3000, 3)")
    assert shop.query().run(step) == 1
    assert shop.written() == [(1, 42, 42), (2, 47, 47), (4, 1000, 1), (5, 1000, 1), (6, 7, 7), (7, 2000, 2)]
    shop.driver.run(f"INSERT INTO {shop.orders} VALUES (8, 3000)")
    assert shop.query().run(step) == 1
    assert shop.written()[6:] == [(8, 3000, 3)]


@pytest.mark.long
def test_a_lookup_that_cant_be_limited_joins_all_the_same(shop: Shop) -> None:
    """It finds keys by which partners are lost: of rows that may change as they are computed again, of a CHAR that is
    padded, and of 0.0, which is -0.0."""
    seen: dict[str, Any] = {}

    def step(batch: AlignedBatch) -> None:
        orders = batch.changes("orders")
        few = batch.lookup("products", orders, on="product", keys_at_most=2)
        seen["few"] = few.count(), scanned(few)
        seen["none"] = batch.lookup("products", orders.limit(0), on="product").count()
        moving = orders.selectExpr("id", "unix_micros(current_timestamp()) AS product")
        others = {
            "moving": moving,
            "random": orders.selectExpr("id", "CAST(rand() * 100 AS BIGINT) AS product"),
            "first": orders.limit(2),
            "newest": shop.driver.spark.table(shop.orders),
            "filtered": orders.where(f"product IN (SELECT product FROM {shop.orders})"),
        }
        for name, rows in others.items():
            seen[name] = scanned(batch.lookup("products", rows, on="product")) >= 100
        batch.state("orders").createOrReplaceTempView("o")
        view = batch.spark.sql("SELECT product, count(*) FROM o WHERE id < 3 GROUP BY product")
        seen["view"] = scanned(batch.lookup("products", view, on="product"))
        other = orders.selectExpr("id", "CAST(product AS DOUBLE) AS product")
        seen["cast"] = batch.lookup("products", other, on="product").count()

    assert shop.query().run(step) == 1
    every = dict.fromkeys(("moving", "random", "first", "newest", "filtered"), True)
    assert seen == {"few": (2, 4 + 100), "none": 0, "cast": 2, "view": 4 + 10} | every
    spark = shop.driver.spark
    spark.sql(f"CREATE TABLE spark_catalog.{shop.db.split('.')[-1]}.padded (code CHAR(5)) USING parquet")
    spark.sql(f"INSERT INTO spark_catalog.{shop.db.split('.')[-1]}.padded VALUES ('ab')")
    wide = spark.table(f"spark_catalog.{shop.db.split('.')[-1]}.padded")
    narrow = spark.sql("SELECT CAST('ab' AS CHAR(3)) AS code")
    assert look_up(narrow, wide, "code", source="s").count() == narrow.join(wide, "code").count()
    one, other = (spark.sql(f"SELECT {number} AS code") for number in ("0D", "-0D"))
    assert look_up(one, other, "code", source="s").count() == 1


def scanned(frame: Any) -> int:
    """Return how many rows the scans of a query gave."""
    with session_settings(frame.sparkSession, {"spark.sql.adaptive.enabled": "false"}):
        again = frame.select("*")
        again.collect()
    leaves = again._jdf.queryExecution().executedPlan().collectLeaves()
    counts = [leaves.apply(n).metrics().get("numOutputRows") for n in range(leaves.size())]
    return sum(int(count.get().value()) for count in counts if count.isDefined())
