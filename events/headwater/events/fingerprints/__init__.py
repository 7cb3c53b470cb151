"""The fingerprint of the shape of a write: 128 bits over its canonical content.

Two runs of one program have one fingerprint, whatever dates, limits, snapshots, offsets or staging directories they
had, and whatever generation the tables were in: literals, expression ids and positions are no part of it, nor is the
order in which Spark lists inputs, outputs, options and the sources of columns. That a read asks for a position is a
part of it: time travel and incremental reads are other shapes than a full read. Neither the job nor the run is a part:
the same write under two names is the same shape.

What counts of an option is decided in `_options`. Names count as they are written: NFC and NFD are two names.
Secrets must be gone from what is given here, as they are from every event: a hash of a password can be guessed at.

Events of one fingerprint may list their inputs in different orders, so an index into the inputs holds in its own event
only: a store never keys anything by it across events.
"""

from __future__ import annotations

from headwater.events.fingerprints._content import fingerprint_of
from headwater.events.fingerprints._options import is_sql_option, without_staging

__all__ = ["fingerprint_of", "is_sql_option", "without_staging"]
