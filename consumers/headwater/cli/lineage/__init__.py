"""`headwater lineage`, and what else follows or changes lineage in a store.

questions   what tables, snapshots and columns were made from
deletion    lineage is deleted, expires, goes from the disk; datasets that are one
publishing  an administrator's event on its way to the bus or into the store
"""
