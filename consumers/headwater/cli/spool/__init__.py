"""`headwater spool`: what drivers left undelivered on this host. Nothing of a driver that runs is changed.

arguments         flags, and which spools are meant
status            which spools there are, here and where Hadoop puts them, and whether they can be read
shipping          what dead drivers left is delivered
listener_changes  what waits for a listener goes to another one, or is thrown away
"""
