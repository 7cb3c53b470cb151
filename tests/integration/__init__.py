"""Several parts together, or one with a real Kafka, PostgreSQL, MariaDB or Spark, as a user runs them.

Drivers that a user would start are processes of their own (`kit/drivers.py`); servers come from the fixtures of
`tests/conftest.py`. What is captured of single statements belongs to `matrix`.
"""
