"""What may be missing, and of whom: told by those who missed it, or inferred where a dead driver couldn't tell.

missing    what one gap is, and which are asked for
told       those that somebody told
numbers    holes in what a producer counted
silence    heartbeats that stopped, and parts of events that never came
snapshots  parents that nobody is known to have made
streams    barriers of a stream that don't join
"""

from headwater.lineage.questions.gaps.missing import Asked, Cause, Missing
from headwater.lineage.questions.gaps.numbers import Pending, pending

__all__ = ["Asked", "Cause", "Missing", "Pending", "pending"]
