"""Secrets and data values are taken out of texts here, before an event exists.

`redact` / `Redactor` take out secrets: by the names of options and by what values look like. `mask_literals`,
`mask_catalyst` and `canonical_text` take the data out of statements and expressions.
"""

from __future__ import annotations

from headwater.events.redaction._canonical import canonical_text
from headwater.events.redaction._catalyst import mask_catalyst
from headwater.events.redaction._literals import mask_literals
from headwater.events.redaction._marker import REDACTED
from headwater.events.redaction._redactor import Redactor, redact

__all__ = ["REDACTED", "Redactor", "canonical_text", "mask_catalyst", "mask_literals", "redact"]
