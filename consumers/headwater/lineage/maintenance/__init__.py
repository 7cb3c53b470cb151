"""What keeps a store in order: deleting lineage, erasing what is hidden, removing old records, making partitions.

deletion     the events that delete, expire or unify, and how much each would hide
purge        erases hidden rows from disk, without changing what is visible
aging        removes old records of runs
partitions   PostgreSQL's monthly partitions
daily        does once a day what a store needs, beside a running writer
"""
