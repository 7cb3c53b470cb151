"""Other tables for a store: made beside the live ones, compared with them, and put in their place.

areas        where fresh and former tables are, beside the live ones, and how a store is copied
state        what a replay into fresh tables is about, and its lock
arrivals     which events one store has received and the other one hasn't, and what it takes over
switching    the interface of a switch-over, and which one a database has
postgresql, mariadb, sqlite   the switch-over of each database
comparison   compares two stores row by row

The live tables are a store's. Fresh ones are filled by a replay; former ones are those that it replaced.
"""
