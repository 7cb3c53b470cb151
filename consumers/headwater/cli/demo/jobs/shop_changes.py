"""A new release of the shop: two tables change, and orders go on coming in. A plain PySpark script."""

import sys

from pyspark.sql import SparkSession

DAY = sys.argv[1]

spark = SparkSession.builder.appName("shop").getOrCreate()
spark.sql("ALTER TABLE lake.ods.orders ALTER COLUMN price TYPE DECIMAL(12, 2)")
spark.sql("ALTER TABLE lake.ods.orders ADD COLUMN coupon STRING")
spark.sql("ALTER TABLE lake.ods.products RENAME COLUMN category TO department")
spark.sql(f"""
    INSERT INTO lake.ods.orders
    SELECT id, 1 + id * 5 % 12, CAST(1 + id % 4 AS INT), CAST(3 + id % 50 AS DECIMAL(12, 2)),
           TIMESTAMP'{DAY} 09:00:00' + make_interval(0, 0, 0, 0, 0, 0, id), if(id % 9 = 0, 'AUTUMN', NULL)
    FROM range(1001, 1501, 1, 1)
""")
spark.stop()
