"""Spark to events: what a PySpark driver does becomes typed events on the listener bus.

    headwater.listeners.install(spark)                 # or spark.headwater.enabled = true, and not a line of code
    with headwater.listeners.job("orders_etl"):
        spark.sql("INSERT INTO …")

Nothing is imported before one of these names is used: every Python that headwater is installed in passes through here.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing's own would take longer to import than all of this
    from typing import Any

    from headwater.listeners.installation import Installation, install, uninstall
    from headwater.listeners.jobs import job

__all__ = ["Installation", "install", "job", "uninstall"]

_HOMES = {
    "Installation": "headwater.listeners.installation",
    "install": "headwater.listeners.installation",
    "job": "headwater.listeners.jobs",
    "uninstall": "headwater.listeners.installation",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - see above

    try:
        return getattr(import_module(_HOMES[name]), name)
    except ImportError as e:
        from headwater.errors import advise_import  # noqa: PLC0415 - see above

        if not (advice := advise_import(e)):
            raise
        raise ImportError(f"headwater.listeners.{name} isn't there: {e}; {advice}", name=e.name) from e
