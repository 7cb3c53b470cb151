"""Secrets and data values are taken out of texts here, before an event exists.

`redact` / `Redactor` take out secrets: by the names of options and by what values look like. `mask_literals` and
`canonical_text` take the data out of statements and expressions, `mask_message` out of what errors say.
"""

from __future__ import annotations

from headwater.events.redaction._messages import mask_message, mask_parameter
from headwater.events.redaction._redactor import Redactor, redact, redacted_excerpt
from headwater.events.redaction._sql import canonical_text, mask_literals
from headwater.events.redaction._texts import READ, REDACTED

__all__ = [
    "READ",
    "REDACTED",
    "Redactor",
    "canonical_text",
    "mask_literals",
    "mask_message",
    "mask_parameter",
    "redact",
    "redacted_excerpt",
]
