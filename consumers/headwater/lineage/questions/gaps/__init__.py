"""What may be missing in the store: reported by those who missed it, or inferred where a dead driver couldn't report.

model      what a gap is, and which ones are asked for
reported   gaps that events report, and catalogs whose options were declared in two ways
sequences  holes in a producer's numbering, and heartbeats that stopped
streams    streams that continue elsewhere than they stopped, and snapshots whose parent nobody wrote
"""

from headwater.lineage.questions.gaps.model import GapCause, GapFilter, PossibleGap
from headwater.lineage.questions.gaps.sequences import PendingGap, find_pending_gaps

__all__ = ["GapCause", "GapFilter", "PendingGap", "PossibleGap", "find_pending_gaps"]
