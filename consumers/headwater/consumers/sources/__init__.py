"""Where a writer reads events: a bus, from where the store says that it is.

api      what a source gives
log      a local log
kafka    a topic
dead_letter_topic    the one beside it
lines    what its client says of itself
"""

from headwater.consumers.sources.api import Batch, Hole, Source, Taken

__all__ = ["Batch", "Hole", "Source", "Taken"]
