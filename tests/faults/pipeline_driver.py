"""A driver of the pipeline that says when a bucket's task is in the midst of a micro-batch: what is killed in tests.

    python -m tests.faults.pipeline_driver BROKERS TOPIC STORE CHECKPOINT MASTER [batch]
"""

from __future__ import annotations

import logging
import sys

from headwater.consumers.spark.pipeline import PipelineOptions, PipelineRun
from headwater.consumers.spark.pipeline.session import pipeline_session
from headwater.lineage.store import StoreOptions


def main(brokers: str, topic: str, store: str, checkpoint: str, master: str, batch: str = "500") -> None:
    logging.basicConfig(level=logging.INFO)
    options = PipelineOptions(
        StoreOptions.at(store),
        topic=topic,
        kafka={"bootstrap.servers": brokers},
        group="g",
        checkpoint=checkpoint,
        most_records=int(batch),
    )
    conf = {"spark.ui.enabled": "false", "spark.speculation": "true", "spark.task.maxFailures": "8"}
    with pipeline_session(conf, master=master) as spark:
        figures = PipelineRun(spark, options).run()
    print("DONE", figures.totals(), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
