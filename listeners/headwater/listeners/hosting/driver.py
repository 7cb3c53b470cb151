"""The driver of what is hosted: started with headwater in it, and ended as what was hosted ended."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NoReturn

from headwater.errors import ConfigurationError
from headwater.events.jobs import JobStatus
from headwater.listeners import hook
from headwater.listeners.installation.contexts import contexts
from headwater.listeners.installation.script import apply_configuration
from headwater.listeners.jobs import ENDED, FINISHED, RunEnd

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DEFAULT_NAME: Final = "pyspark-shell"
"""What Spark calls an application that nobody gave a name."""
_STOP_SECONDS: Final = 20.0


class HostingError(ConfigurationError):
    """What is to be hosted isn't there, or can't be started so."""


@dataclass(frozen=True)
class Launch:
    """What the driver is started with."""

    configuration: Mapping[str, str]
    submitted: Sequence[str] = ()
    """Flags of spark-submit."""


def host(work: Callable[[], RunEnd], launch: Launch) -> NoReturn:
    """Do it with headwater enabled in the driver that it starts, and end as it says, by a SystemExit. How the run ended
    is reported when the interpreter ends."""
    apply_configuration({hook.ENABLED: "true", **launch.configuration}, launch.submitted)
    hook.watch()
    exits = contexts.exits
    exits.is_end_awaited = True
    try:
        exits.known_end = work()
    except KeyboardInterrupt as e:
        exits.known_end, exits.final_signal = exits.end_of(e), signal.SIGINT
        raise SystemExit(1) from None
    except BaseException as e:
        exits.known_end = exits.end_of(e)
        raise
    raise SystemExit(exits.known_end.exit_code or 0)


def start_jvm() -> Any:
    """The JVM, before there is a SparkContext in it."""
    from pyspark import SparkContext  # noqa: PLC0415 - loaded when it is needed: it takes a while

    context: Any = SparkContext
    context._ensure_initialized()
    return context._jvm


def make_session(name: str, defaults: Mapping[str, str] | None = None) -> SparkSession:
    """A session of an application that is called so unless it has a name; `defaults` give way to what is configured."""
    from pyspark import SparkConf  # noqa: PLC0415
    from pyspark.sql import SparkSession  # noqa: PLC0415

    conf = SparkConf()
    for key, value in (defaults or {}).items():
        conf.setIfMissing(key, value)
    if conf.get("spark.app.name", _DEFAULT_NAME) == _DEFAULT_NAME:
        conf.setAppName(name)
    builder: Any = SparkSession.builder
    made: SparkSession = builder.config(conf=conf).getOrCreate()
    return made


def has_class(jvm: Any, name: str) -> bool:
    try:
        jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass(name)
    except Exception:  # noqa: BLE001 - whatever a class loader says: it isn't there
        return False
    return True


def end_of_jvm(code: int | None) -> RunEnd:
    """How a run ended whose JVM ended so; None where it didn't end."""
    if code is None:
        return replace(ENDED, exit_code=1)
    if code < 0:
        return RunEnd(status=JobStatus.KILLED, signal=-code, exit_code=128 - code)
    return replace(FINISHED, exit_code=0) if code == 0 else RunEnd(status=JobStatus.FAILED, exit_code=code)


def stop(spark: SparkSession) -> None:
    """Stop Spark; what it did is reported before. What hangs is left alone: the JVM ends with this process."""
    run_with_timeout(_STOP_SECONDS, spark.stop)


def run_with_timeout(seconds: float, work: Callable[[], object]) -> None:
    """Do it in a thread of its own, and wait so long for it at most."""
    thread = threading.Thread(target=_suppress_errors, args=(work,), name="headwater-stop", daemon=True)
    thread.start()
    thread.join(seconds)


def _suppress_errors(work: Callable[[], object]) -> None:
    try:
        work()
    except Exception:  # noqa: BLE001 - at the end, and the JVM may be gone
        return
