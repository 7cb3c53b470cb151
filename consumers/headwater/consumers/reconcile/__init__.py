"""Compares the logs that tables keep themselves with the store, and reports the commits that nobody reported.

A reader for each table format gives what its log has (`table_logs`), without Spark; `comparison` says which of it the
store doesn't know, and makes events of that. It imports `lineage` and what is under `events/`.
"""
