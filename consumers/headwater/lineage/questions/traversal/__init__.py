"""Walks from snapshot to snapshot, level by level. Each level needs a few statements for all snapshots found so far.

context            the state of one walk
snapshot_rows      loads writes and reads by many keys at once
snapshot_writers   which commit wrote a snapshot
ancestry           all commits of a state or of a range of changes, and what they were made from
descent            all snapshots that still contain a commit
downstream         what was made from snapshots
table_edges        edges between tables, without deleted ones
column_links       which columns a statement writes from which
views              definitions of views
identities         datasets that are the same
tombstone_lookup   which rows deletions hide
limits             collects the limits of an answer
"""
