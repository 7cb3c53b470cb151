"""The archive: every event as it came, with columns to query it by, for as long as wanted.

api            what an archive is written to
archiver       from a source into an archive
buffer         rows that wait to be archived
columns        the columns; records to rows and back
column_decoding  decodes a batch
decoding       reads single events
directory      Parquet files in a directory
iceberg        an Iceberg table
files          writes and reads these files
exchange       replaces files of a directory at once
upkeep         compaction and retention
verification   examines an archive
commit_log     which files belong to the archive
state          the archive after a commit
arrow          pyarrow without types
metrics        what an archiver counts
"""
