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
from headwater.listeners.installation.installed import Installation
from headwater.listeners.installation.parts import Parts

__all__ = ["Installation", "InstallationError", "Parts", "at_exit", "begin", "contexts", "install", "uninstall"]
