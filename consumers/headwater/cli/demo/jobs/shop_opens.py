"""A shop opens: its tables are made, and its products and first orders come in. A plain PySpark script."""

import sys

from pyspark.sql import SparkSession

DAY = sys.argv[1]
PRODUCTS = """
    VALUES (1, 'Cup', 'kitchen'), (2, 'Kettle', 'kitchen'), (3, 'Lamp', 'office'), (4, 'Notebook', 'office'),
           (5, 'Pen', 'office'), (6, 'Backpack', 'travel'), (7, 'Bottle', 'travel'), (8, 'Umbrella', 'travel'),
           (9, 'Chess set', 'games'), (10, 'Dice', 'games'), (11, 'Cards', 'games'), (12, 'Puzzle', 'games')
"""

spark = SparkSession.builder.appName("shop").getOrCreate()

for layer in ("ods", "dwd", "dws"):
    spark.sql(f"CREATE NAMESPACE lake.{layer}")
spark.sql("CREATE TABLE lake.ods.products (product_id BIGINT, name STRING, category STRING) USING iceberg")
spark.sql("""
    CREATE TABLE lake.ods.orders
    (order_id BIGINT, product_id BIGINT, quantity INT, price DECIMAL(10, 2), ordered_at TIMESTAMP) USING iceberg
""")
spark.sql("""
    CREATE TABLE lake.dwd.order_details
    (order_id BIGINT, product_id BIGINT, product STRING, quantity INT, amount DECIMAL(14, 2), ordered_at TIMESTAMP)
    USING iceberg
""")
spark.sql("CREATE TABLE lake.dws.revenue_today (day DATE, orders BIGINT, revenue DECIMAL(24, 2)) USING iceberg")
spark.sql("""
    CREATE TABLE lake.dws.top10
    (product STRING, category STRING, sold BIGINT, revenue DECIMAL(24, 2)) USING iceberg
""")

spark.sql(f"INSERT INTO lake.ods.products {PRODUCTS}")
for first in (1, 501):
    spark.sql(f"""
        INSERT INTO lake.ods.orders
        SELECT id, 1 + id * 7 % 12, CAST(1 + id % 3 AS INT), CAST(IF(id = 722, 4500, 2.5 + id % 40) AS DECIMAL(10, 2)),
               TIMESTAMP'{DAY} 09:00:00' + make_interval(0, 0, 0, 0, 0, 0, id)
        FROM range({first}, {first + 500}, 1, 1)
    """)
spark.stop()
