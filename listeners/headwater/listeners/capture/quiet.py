"""py4j writes a traceback to the root logger whenever the JVM is gone: nobody's business where it was we who asked."""

from __future__ import annotations

import logging
import threading
from typing import Final

_OURS: Final = "headwater"
"""What the names of all our threads begin with."""
_FINALIZER: Final = "FinalizerWorker"
"""py4j's thread that lets go of Java's objects, ours among them."""
_WORDS: Final = "Exception while sending command"


class Quiet(logging.Filter):
    """On the root logger from `begin` to `end`, or for good where the JVM is gone."""

    def begin(self) -> None:
        logging.getLogger().addFilter(self)

    def end(self) -> None:
        logging.getLogger().removeFilter(self)

    def filter(self, record: logging.LogRecord) -> bool:
        thread = threading.current_thread()
        is_ours = thread.name.startswith(_OURS) or type(thread).__name__ == _FINALIZER
        return not (is_ours and str(record.msg).startswith(_WORDS))
