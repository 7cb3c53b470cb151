"""Events as people and programs read them: one line of text, or one line of JSON (docs/event-json.md).

The console and the command line show events with this; nothing else imports it.
"""

from headwater.events.presentation.json_form import event_object, json_line
from headwater.events.presentation.line import Line, Tone, as_shown, line_of
from headwater.events.presentation.strangers import Origin, Stranger, Undecodable, stranger_line, stranger_object

__all__ = [
    "Line",
    "Origin",
    "Stranger",
    "Tone",
    "Undecodable",
    "as_shown",
    "event_object",
    "json_line",
    "line_of",
    "stranger_line",
    "stranger_object",
]
