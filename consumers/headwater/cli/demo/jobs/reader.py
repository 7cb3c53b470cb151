"""Somebody who compares the tables with each other all the while, until a file appears. A plain PySpark script."""

import sys
from pathlib import Path

from pyspark.sql import SparkSession

READY, STOP = map(Path, sys.argv[1:])

spark = SparkSession.builder.appName("reader").getOrCreate()
queries = mixtures = 0
is_last = False
while not is_last:
    is_last = STOP.exists()
    (found,) = spark.sql("""
        WITH sold AS (SELECT product, sum(amount) AS revenue FROM lake.dwd.order_details GROUP BY product)
        SELECT (SELECT sum(quantity * price) FROM lake.ods.orders) AS ordered,
               (SELECT sum(revenue) FROM sold) AS detailed,
               (SELECT revenue FROM lake.dws.revenue_today) AS reported,
               (SELECT count(*) FROM lake.dws.top10 t JOIN sold s ON s.product = t.product
                WHERE s.revenue <> t.revenue) AS differing
    """).collect()
    queries += 1
    mixtures += found.differing > 0 or len({found.ordered, found.detailed, found.reported}) > 1
    if queries == 1:
        print(f"first: {found.reported}")
        READY.touch()
print(f"last: {found.reported}")
print(f"queries: {queries}")
print(f"mixtures: {mixtures}")
spark.stop()
