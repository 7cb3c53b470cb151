"""A store by its name: `lineage-meta` says which implementation, an entry point or a path where it is."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from headwater import plugins
from headwater.errors import PluginError
from headwater.lineage.api import LINEAGE_META, LineageMeta, LineageMetaContext, LineageMetaFactory
from headwater.lineage.meta.on_threads import LineageMetaOnThreads

OPTION: Final = "lineage-meta"
DEFAULT: Final = "jdbc"


def open_lineage_meta(options: Mapping[str, str]) -> LineageMeta:
    """The store that a catalog's options ask for; what they have beside `lineage-meta` is its factory's business."""
    return lineage_meta_factory(options.get(OPTION, DEFAULT)).create(LineageMetaContext(options))


async def open_async_lineage_meta(options: Mapping[str, str]) -> LineageMetaOnThreads:
    """The same for an event loop."""
    return LineageMetaOnThreads(await asyncio.to_thread(open_lineage_meta, options))


def lineage_meta_factory(name: str) -> LineageMetaFactory:
    """The factory of that name, or at `package.module:Factory`. A PluginError says what is wrong with it."""
    found: Any = plugins.load(LINEAGE_META, name)
    if isinstance(found, type):
        try:
            found = found()
        except Exception as e:  # a plug-in can fail in any way
            raise PluginError(f"{name} can't be made without arguments: {type(e).__name__}: {e}") from e
    if not isinstance(found, LineageMetaFactory):
        raise PluginError(f"{name} is no factory of stores: it has no identifier() and create(context)")
    return found
