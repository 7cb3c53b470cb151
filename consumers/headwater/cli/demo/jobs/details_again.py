"""What the stream of order_details makes, as a batch: for days on which something has to be made again. A plain PySpark
script."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("details_again").getOrCreate()
spark.sql("""
    INSERT OVERWRITE lake.dwd.order_details
    SELECT order_id, product_id, name, quantity, CAST(quantity * price AS DECIMAL(14, 2)), ordered_at
    FROM lake.ods.orders JOIN lake.ods.products USING (product_id)
""")
