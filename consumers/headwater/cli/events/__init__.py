"""`headwater events`: the events of a local log, or of a driver's spool, as text or JSON.

reading    where events are read from: journals, without taking part in anything
showing    the commands, which events are meant, and how they look
"""
