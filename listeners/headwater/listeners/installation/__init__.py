"""headwater's life in a driver: installed in a SparkContext, ended with it, and never in its way."""

from __future__ import annotations

from headwater.listeners.installation.contexts import (
    InstallationError,
    at_exit,
    begin,
    contexts,
    install,
    uninstall,
)
from headwater.listeners.installation.factories import InstallationFactories, prepare
from headwater.listeners.installation.installation import Installation

__all__ = [
    "Installation",
    "InstallationError",
    "InstallationFactories",
    "at_exit",
    "begin",
    "contexts",
    "install",
    "prepare",
    "uninstall",
]
