"""On the driver: what surrounds Spark's jobs, so that their errors are headwater's own."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from headwater.consumers.retrying import StopRequested
from headwater.errors import HeadwaterError, TerminalError, TransientError
from headwater.events.redaction import redacted_excerpt

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ARROW_RECORDS: Final = "spark.sql.execution.arrow.maxRecordsPerBatch"
_MOST_RECORDS: Final = "2000"
"""Of an Arrow batch: an event may have a megabyte."""
_RAISED: Final = re.compile(r"^(headwater\.[\w.]+)\.(\w+): (.*)$", re.MULTILINE)
"""The last line of a Python traceback, as Spark repeats it."""
_LONGEST: Final = 1_000


@contextmanager
def small_arrow_batches(frame: DataFrame) -> Generator[None]:
    """Bound what comes at once to a task's Python. The session's own setting comes back afterwards."""
    conf = frame.sparkSession.conf
    before = conf.get(_ARROW_RECORDS)
    conf.set(_ARROW_RECORDS, _MOST_RECORDS)
    try:
        yield
    finally:
        if before is not None:
            conf.set(_ARROW_RECORDS, before)


@contextmanager
def job_errors(is_stopping: Callable[[], bool]) -> Generator[None]:
    """Translate what Spark raises for a job that failed: the error of the task, if that was one of headwater's. While
    the run is stopping, its jobs are cancelled."""
    try:
        yield
    except HeadwaterError:
        raise
    except Exception as e:
        raise StopRequested if is_stopping() else translate_job_error(e) from e


def translate_job_error(error: Exception) -> HeadwaterError:
    """Return the error that a task raised, or that Spark gave a job up. Whoever runs the same again loses nothing."""
    java: Any = getattr(error, "java_exception", None)
    words = str(error) if java is None else str(java.toString())
    for module, name, message in _RAISED.findall(words):
        kind = getattr(importlib.import_module(module), name, None)
        if isinstance(kind, type) and issubclass(kind, HeadwaterError):
            is_transient = issubclass(kind, TransientError)
            return TransientError(message) if is_transient else TerminalError(message)
    return TransientError(
        f"Spark gave a micro-batch up, which is read again by the next run: {redacted_excerpt(words, _LONGEST)}"
    )
