"""`headwater events`: the events of a local log, or of a driver's spool, as text or JSON.

sources    where events are read from
reading    journals, read without taking part in anything
selection  which events are meant
showing    the commands, and how events look
"""
