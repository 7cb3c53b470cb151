"""The whole path: scripts by spark-submit, spool, Kafka, writer, store, questions, against the tables' own files."""
