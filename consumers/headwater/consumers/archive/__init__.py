"""The archive: every event as it came, with columns to query it by, for as long as wanted. It is a Delta table.

archiver       from a source into an archive, and what it counts
buffer         rows that wait to be archived
columns        the columns; records to rows and back
decoding       what of an event stands in columns of its own
table          opens the table, appends to it, says what it holds
ordered_rows   reads its files in the order of offsets, and verifies them
upkeep         compaction and retention
arrow          pyarrow without types
"""
