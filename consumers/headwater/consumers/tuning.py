"""Settings of the interpreter for processes that read events in batches."""

from __future__ import annotations

import gc
from typing import Final

_GENERATION: Final = (50_000, 50, 50)
"""Objects of a batch are many, and all go at its end: looking for cycles among them takes up to half of the time."""


def tune_garbage_collection(*, freeze: bool = True) -> None:
    """Look for cycles of garbage less often. `freeze` leaves out what is there now, such as modules."""
    if freeze:
        gc.freeze()
    if gc.get_threshold() != _GENERATION:
        gc.set_threshold(*_GENERATION)
