"""A driver that tells the store directly, whose PostgreSQL is killed in the middle: the job doesn't notice, and nothing
is lost. The truth is in the table's own metadata."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from sqlalchemy import text

from headwater.lineage.store import open_store
from headwater.local import PostgresServer
from tests.kit.drivers import PYTHON, SECONDS, SESSION, Place
from tests.kit.formats.iceberg_truth import Metadata, metadata_at
from tests.kit.spark.driver import ICEBERG
from tests.kit.spark.hosting import configure
from tests.kit.waiting import until as wait_until

pytestmark = [pytest.mark.long, pytest.mark.spark, pytest.mark.database]

SCRIPT: Final = (
    SESSION
    + """
import pathlib, time
def until(name):
    while not pathlib.Path(name).exists():
        time.sleep(0.02)
spark.sql("CREATE TABLE ice.db.orders (id INT) USING iceberg")
spark.sql("CREATE TABLE ice.db.daily (id INT) USING iceberg")
spark.sql("INSERT INTO ice.db.orders VALUES (1)")
spark.sql("INSERT INTO ice.db.daily SELECT * FROM ice.db.orders")
pathlib.Path("begun").touch()
until("killed")
for number in range(3):
    spark.sql(f"INSERT INTO ice.db.orders VALUES ({number})")
    spark.sql("INSERT INTO ice.db.daily SELECT * FROM ice.db.orders")
pathlib.Path("written").touch()
until("restarted")
spark.sql("INSERT INTO ice.db.daily SELECT * FROM ice.db.orders")
spark.stop()
"""
)
WRITTEN: Final = text(
    "SELECT w.snapshot FROM writes w JOIN places p ON p.id = w.place_id JOIN datasets d ON d.id = p.dataset "
    "WHERE d.name LIKE :name AND w.snapshot IS NOT NULL ORDER BY w.barrier"
)
MADE_FROM: Final = text(
    "SELECT w.snapshot AS made, r.snapshot AS source FROM writes w "
    "JOIN reads r ON r.commit_id = w.commit_id AND r.barrier = w.barrier "
    "JOIN places target ON target.id = w.place_id JOIN datasets d ON d.id = target.dataset "
    "JOIN places origin ON origin.id = r.place_id JOIN datasets s ON s.id = origin.dataset "
    "WHERE d.name LIKE '%/db/daily' AND s.name LIKE '%/db/orders'"
)


def test_nothing_is_lost_when_the_database_is_killed(tmp_path: Path, java_home: Path) -> None:
    place = Place(tmp_path, java_home)
    warehouse = tmp_path / "warehouse"
    with PostgresServer(durable=False) as server:
        configure(
            place,
            ICEBERG.packages,
            {
                **ICEBERG.conf,
                "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
                "spark.sql.catalog.ice.type": "hadoop",
                "spark.sql.catalog.ice.warehouse": str(warehouse),
                "spark.headwater.listeners": "jdbc",
                "spark.headwater.jdbc.url": server.address,
                "spark.headwater.jdbc.timeout": "5 s",
            },
        )
        with place.start([PYTHON, place.script(SCRIPT)]) as process:
            wait_until((tmp_path / "begun").exists)
            server.kill()
            (tmp_path / "killed").touch()
            wait_until((tmp_path / "written").exists)
            server.restart()
            (tmp_path / "restarted").touch()
            _, err = process.communicate(timeout=SECONDS)
        assert process.returncode == 0, err
        orders, daily = (metadata_at(warehouse / "db" / name) for name in ("orders", "daily"))
        assert (len(orders.ids), len(daily.ids)) == (4, 5)
        assert stored(server, "orders") == orders.ids, err
        assert stored(server, "daily") == daily.ids
        assert made_from(server) == expected(daily, orders)


def stored(server: PostgresServer, table: str) -> list[int]:
    """Its snapshots, in the order of their barriers."""
    with open_store(server.address) as store, store.engine.connect() as connection:
        return list(connection.execute(WRITTEN, {"name": f"%/db/{table}"}).scalars())


def made_from(server: PostgresServer) -> dict[int, int]:
    with open_store(server.address) as store, store.engine.connect() as connection:
        return {each.made: each.source for each in connection.execute(MADE_FROM)}


def expected(daily: Metadata, orders: Metadata) -> dict[int, int]:
    """Each append to `daily` read what `orders` was when it was made: the newest snapshot before it."""
    times = [(each["timestamp-ms"], number) for number, each in orders.snapshots.items()]
    return {
        number: max((at, source) for at, source in times if at <= each["timestamp-ms"])[1]
        for number, each in daily.snapshots.items()
    }
