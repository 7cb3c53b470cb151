"""Each order with the product that was ordered, as a stream. A plain PySpark script."""

import sys

from pyspark.sql import SparkSession

CHECKPOINT = sys.argv[1]

spark = SparkSession.builder.appName("details").getOrCreate()
orders = spark.readStream.option("streaming-max-files-per-micro-batch", 1).table("lake.ods.orders")
details = orders.join(spark.table("lake.ods.products"), "product_id").selectExpr(
    "order_id",
    "product_id",
    "name AS product",
    "quantity",
    "CAST(quantity * price AS DECIMAL(14, 2)) AS amount",
    "ordered_at",
)
query = (
    details.writeStream.queryName("order_details")
    .option("checkpointLocation", CHECKPOINT)
    .toTable("lake.dwd.order_details", outputMode="append")
)
query.processAllAvailable()
query.stop()
spark.stop()
