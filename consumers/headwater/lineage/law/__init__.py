"""The merge law: events become row changes, and row changes become rows, the same in every order of arrival.

changes    what an event changes: a pure function of the event and its append time
telling    the stamp and time of an event, and the rows that many kinds of events tell
catalog, commits, jobs, others    what events of a family tell
state      rows in memory, and the digest of rows wherever they are
"""

from headwater.lineage.law.changes import changes
from headwater.lineage.law.state import Digest, State, collapsed

__all__ = ["Digest", "State", "changes", "collapsed"]
