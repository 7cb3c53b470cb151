"""How much of today's revenue comes from what sold best. A plain PySpark script."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("share_of_top10").getOrCreate()
(found,) = spark.sql("""
    SELECT round(100 * sum(t.revenue) / first(r.revenue), 1) AS share
    FROM lake.dws.top10 t CROSS JOIN lake.dws.revenue_today r
""").collect()
print(f"share: {found.share} %")
spark.stop()
