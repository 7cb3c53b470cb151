"""The archive: every event as it came, with columns to query it by, for as long as wanted.

api            what an archive is written to
archiver       from a source into an archive
buffer         rows that wait to be archived
columns        the columns; records to rows and back
decoding       reads what the columns have from an event's bytes
directory      Parquet files in a directory
files          writes and reads these files
commit_log     which files belong to the archive
state          the archive after a commit
arrow          pyarrow without types
metrics        what an archiver counts
"""
