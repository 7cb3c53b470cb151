"""Bytes of many events become collapsed rows: what `law.changes` gives, for ten thousand events a second.

gathering    the rows of a batch; whatever isn't a plain case goes the law's own way
commits      Committed, which most events are
again        rows that are told again and again
"""

from headwater.lineage.quick.gathering import Gathered, Gathering

__all__ = ["Gathered", "Gathering"]
