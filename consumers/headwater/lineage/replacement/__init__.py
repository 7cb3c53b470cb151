"""Other tables for a store: made beside the live ones, compared with them, and put in their place.

areas        where fresh and former tables are, beside the live ones
state        what a replay into fresh tables is about, and its lock
arrivals     which events one store has received and the other one hasn't
writer_state what of the live store's own records the fresh one takes over
switching    the interface of a switch-over, and which one a database has
postgresql, mariadb, sqlite   the switch-over of each database
privileges   rights on PostgreSQL's tables, and objects that depend on them
copying      copies all rows of one store into another
comparison   compares two stores row by row

The live tables are a store's. Fresh ones are filled by a replay; former ones are those that it replaced.
"""
