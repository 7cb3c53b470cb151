"""Events as people and programs read them: one line of text, or one line of JSON (docs/event-json.md).

The console and the command line show events with this; nothing else imports it.
"""

from headwater.events.json_form import event_object, json_line
from headwater.events.presentation.line import (
    Line,
    RecordOrigin,
    Severity,
    Undecodable,
    Undecoded,
    format_line,
    line_of,
    undecoded_line,
    undecoded_object,
)

__all__ = [
    "Line",
    "RecordOrigin",
    "Severity",
    "Undecodable",
    "Undecoded",
    "event_object",
    "format_line",
    "json_line",
    "line_of",
    "undecoded_line",
    "undecoded_object",
]
