"""The lens: what unchanged code sees instead of a table's name. A table at a version, another table, or a branch.

model      what a lens says, and what was refused under it
java       the Java side, compiled in the driver, which puts it into Spark's analysis
session    puts a lens into a SparkSession, and takes it out; refuses sessions that can't have one
application  the same for all sessions of an application
java_calls  closes the ways around SQL while writes are redirected

It stands beside `headwater.listeners` and needs neither them nor a store.
"""

from headwater.lens.application import SessionLenses, put_into_sessions
from headwater.lens.model import Lens, LensError, TargetEffect, TargetUse
from headwater.lens.session import ActiveLens, lens, refuse_remote_sessions

__all__ = [
    "ActiveLens",
    "Lens",
    "LensError",
    "SessionLenses",
    "TargetEffect",
    "TargetUse",
    "lens",
    "put_into_sessions",
    "refuse_remote_sessions",
]
