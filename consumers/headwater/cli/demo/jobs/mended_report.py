"""The daily report with the name that a column of products has now. A plain PySpark script."""

import sys

from pyspark.sql import SparkSession

DAY = sys.argv[1]

spark = SparkSession.builder.appName("daily_report").getOrCreate()
spark.sql(f"""
    INSERT OVERWRITE lake.dws.revenue_today
    SELECT DATE'{DAY}', count(*), sum(amount) FROM lake.dwd.order_details WHERE to_date(ordered_at) = DATE'{DAY}'
""")
spark.sql("""
    INSERT OVERWRITE lake.dws.top10
    SELECT d.product, p.department, sum(d.quantity) AS sold, sum(d.amount) AS revenue
    FROM lake.dwd.order_details d JOIN lake.ods.products p ON p.product_id = d.product_id
    GROUP BY d.product, p.department ORDER BY sold DESC, d.product LIMIT 10
""")
