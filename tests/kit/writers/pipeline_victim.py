"""A driver of the pipeline, to be killed: it reads what is on a topic, in micro-batches of 700 events.

python -m tests.kit.writers.pipeline_victim BROKERS TOPIC STORE MASTER
"""

from __future__ import annotations

import sys

from headwater.consumers.spark.pipeline import PipelineOptions, PipelineRun
from headwater.consumers.spark.pipeline.session import pipeline_session
from headwater.lineage.store import StoreOptions
from tests.kit.spark.packages import package_settings

CONF = {
    "spark.ui.enabled": "false",
    "spark.executor.memory": "512m",
    "spark.speculation": "true",
    "spark.task.maxFailures": "8",
    "spark.excludeOnFailure.enabled": "false",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


def main(arguments: list[str]) -> None:
    from headwater import local
    from headwater.consumers.spark.pipeline.kafka_topic import kafka_package

    brokers, topic, store, master = arguments
    options = PipelineOptions(
        StoreOptions.at(store),
        topic=topic,
        kafka={"bootstrap.servers": brokers},
        group="g",
        buckets=2,
        most_records=700,
    )
    import pyspark

    packages = package_settings(local.java().home, kafka_package(str(pyspark.__version__)))
    with pipeline_session({**CONF, **packages}, master=master) as spark:
        print("DONE", PipelineRun(spark, options).run().totals(), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
