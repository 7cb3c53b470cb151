"""The pipeline on Spark: events from Kafka, a local log or an archive into a store, decoded and written by executors.

The driver only keeps order. Tasks turn records into rows, by the writer's own code; rows of one key meet in one task,
which writes them. The driver moves offsets when all tasks are done.

options         the settings
runner          runs a pipeline; the functions for jobs of users
session         the Spark session of the command
kafka_topic     what brokers say of a topic
polled_batches  forms micro-batches of what a bus has: a topic, a log, an archive, whatever a replay reads
frames          frames with the records of a micro-batch
batch_writer    has a micro-batch read and written, and moves offsets
jobs            errors of Spark's jobs, translated
records         records as columns, and in an executor's Python
reading_tasks   on executors: records to rows
shares          what goes through the shuffle
writing_tasks   on executors: rows into the store
lake            rows into tables of a lake, for a store that outgrows a database
"""

from headwater.consumers.spark.pipeline.batch_writer import PipelineFigures
from headwater.consumers.spark.pipeline.options import PipelineOptions
from headwater.consumers.spark.pipeline.runner import PipelineRun, run_pipeline, store_events

__all__ = ["PipelineFigures", "PipelineOptions", "PipelineRun", "run_pipeline", "store_events"]
