"""The jobs of the whole path: plain PySpark scripts that know nothing of headwater, and what they really do.

    orders, products  ──►  details  ──(stream)──►  revenue  ──►  top

`details` is written twice, with a statement between that fails; the stream reads each in a micro-batch of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

SHOP: Final = """
import sys
from pyspark.sql import SparkSession
catalog, provider, root = sys.argv[1:]
spark = SparkSession.builder.appName(f"shop_{provider}").getOrCreate()
db = f"{catalog}.shop"
spark.sql(f"CREATE DATABASE {db}")
for name, columns in {
    "orders": "id BIGINT, product BIGINT, amount DOUBLE",
    "products": "id BIGINT, name STRING",
    "details": "id BIGINT, name STRING, amount DOUBLE",
    "revenue": "id BIGINT, amount DOUBLE",
}.items():
    spark.sql(f"CREATE TABLE {db}.{name} ({columns}) USING {provider}")

def enrich(name, which):
    spark.sql(f"INSERT INTO {db}.details SELECT o.id, {name}, o.amount FROM {db}.orders o "
              f"JOIN {db}.products p ON o.product = p.id WHERE o.id {which}")

def place(name):
    return f"{root}/shop.db/{name}"

def stream():
    if provider == "paimon":
        frame = spark.readStream.format("paimon").load(place("details"))
    else:
        frame = spark.readStream.table(f"{db}.details")
    writer = (frame.select("id", "amount").writeStream.queryName(f"revenue_{provider}").format(provider)
              .option("checkpointLocation", f"checkpoint-{provider}"))
    query = writer.start(place("revenue")) if provider == "paimon" else writer.toTable(f"{db}.revenue")
    query.processAllAvailable()
    query.stop()

spark.sql(f"INSERT INTO {db}.orders VALUES (1, 10, 2.5), (2, 20, 4.0)")
spark.sql(f"INSERT INTO {db}.products VALUES (10, 'tea'), (20, 'salt')")
enrich("p.name", "< 3")
stream()
spark.sql(f"ALTER TABLE {db}.orders ADD COLUMNS (note STRING)")
spark.sql(f"INSERT INTO {db}.orders VALUES (3, 10, 8.0, 'urgent')")
try:
    enrich("CASE WHEN o.amount > 7 THEN raise_error('no rate for EUR') ELSE p.name END", ">= 3")
except Exception as error:
    print("handled:", type(error).__name__)
enrich("p.name", ">= 3")
stream()
spark.sql(f"CREATE TABLE {db}.top USING {provider} AS SELECT id, sum(amount) AS total FROM {db}.revenue GROUP BY id")
spark.stop()
"""
DOOMED: Final = """
import os
import headwater.listeners
from pyspark.sql import SparkSession
spark = SparkSession.builder.appName("doomed").getOrCreate()
spark.sql("CREATE TABLE lost (id BIGINT) USING parquet")
spark.sql("CREATE TABLE found (id BIGINT) USING parquet")
spark.sql("INSERT INTO lost VALUES (1)")
spark.sql("INSERT INTO found SELECT * FROM lost")
assert headwater.listeners.install(spark)._tracker.emit_all(600), "not all is in the spool"
print("settled", os.getpid(), spark._jvm.java.lang.ProcessHandle.current().pid(), flush=True)
spark.range(10 ** 15).selectExpr("max(hash(id))").write.saveAsTable("never")
"""
NEXT: Final = """
import glob, sys, time
from pyspark.sql import SparkSession
spark = SparkSession.builder.appName("next").getOrCreate()
deadline = time.monotonic() + 60
while len(glob.glob(sys.argv[1] + "/*/*.segment")) > 1 and time.monotonic() < deadline:
    time.sleep(0.1)  # it has something to do, and meanwhile what the dead one left is sent
spark.stop()
"""


@dataclass(frozen=True)
class Kept:
    """The versions of each table that hold data, in their order, as the format's own files have them."""

    orders: list[int]
    products: list[int]
    details: list[int]
    revenue: list[int]
    top: list[int]


Edge = tuple[str, int | None, str, int | None, int | None]
"""A table and its snapshot, what that was made from, and where it read changes, behind what."""


def upstream_of_top(kept: Kept) -> set[Edge]:
    """By hand, from the script: what the commit of each snapshot read, from the newest of `top` down."""
    (top,), (_, revenue), (before, details) = kept.top, kept.revenue, kept.details
    return {
        ("top", top, "revenue", revenue, None),
        ("revenue", revenue, "details", details, before),
        ("details", details, "orders", kept.orders[1], None),
        ("details", details, "products", kept.products[0], None),
    }


def downstream_of_products(kept: Kept) -> set[Edge]:
    """By hand: whoever read a snapshot itself, or changes that it is among."""
    (top,), revenue, details = kept.top, kept.revenue, kept.details
    return {
        ("details", details[0], "products", kept.products[0], None),
        ("details", details[1], "products", kept.products[0], None),
        ("revenue", revenue[0], "details", details[0], None),
        ("revenue", revenue[1], "details", details[1], details[0]),
        ("top", top, "revenue", revenue[1], None),
    }


TABLES: Final = {("top", "revenue"), ("revenue", "details"), ("details", "orders"), ("details", "products")}
COLUMNS: Final = {
    ("top.total", "revenue.amount", "AGGREGATION"),
    ("revenue.amount", "details.amount", "IDENTITY"),
    ("details.amount", "orders.amount", "IDENTITY"),
}
