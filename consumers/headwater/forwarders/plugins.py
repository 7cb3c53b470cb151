"""Finds forwarders by the name of an entry point or by their path, and creates them."""

from __future__ import annotations

import inspect
from typing import Any, cast

from headwater.errors import HeadwaterError, PluginError, advise_import
from headwater.forwarders.api import GROUP, Forwarder, ForwarderContext
from headwater.plugins import OWN_PLUGINS, extra_command, load

_ADVICE = "write async def handle(self, batch)"


def create_forwarder(type_name: str, context: ForwarderContext) -> Forwarder:
    """Create a forwarder. A PluginError says why there is none."""
    factory = load_forwarder(type_name)
    if not callable(factory):
        raise PluginError(f"{type_name} is no forwarder: name a class, or a function that is given the context")
    try:
        created = factory(context)
    except HeadwaterError:
        raise
    except Exception as e:  # a plug-in can fail in any way
        raise PluginError(f"{type_name} can't be created: {type(e).__name__}: {e}") from e
    return check_forwarder(created)


def load_forwarder(type_name: str) -> Any:
    """Return the class or function of this type. A PluginError says why there is none."""
    try:
        return load(GROUP, type_name)
    except PluginError as e:
        if advice := _advise_extra(type_name, e):
            raise PluginError(advice) from e
        raise


def _advise_extra(type_name: str, error: PluginError) -> str:
    """Return how to install what one of headwater's own forwarders needs, or nothing if that isn't what is wrong."""
    cause = error.__cause__
    if type_name not in OWN_PLUGINS[GROUP] or not isinstance(cause, ImportError) or not advise_import(cause):
        return ""
    return f"the forwarder {type_name} needs packages that aren't installed ({cause.name}): {extra_command(type_name)}"


def check_forwarder(forwarder: object) -> Forwarder:
    """Return it if its `handle` can be awaited with a batch."""
    name = f"{type(forwarder).__name__}.handle"
    method = getattr(forwarder, "handle", None)
    if not callable(method):
        raise PluginError(f"{name} is no method: {_ADVICE}")
    if not inspect.iscoroutinefunction(method):
        raise PluginError(f"{name} isn't asynchronous: {_ADVICE}")
    try:
        inspect.signature(method).bind(())
    except TypeError:
        raise PluginError(f"{name}{inspect.signature(method)} can't be called with a batch: {_ADVICE}") from None
    return cast("Forwarder", forwarder)
