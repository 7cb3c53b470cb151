"""Commits that no plan tells of: made by calling a format's library, or by a statement that failed behind them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from headwater.listeners.capture.batch.omitted import Omitting
from headwater.listeners.capture.formats import all_formats
from headwater.listeners.capture.formats.protocol import Loose, TellsLoose
from headwater.listeners.capture.scene import Scene


def loose(facts: Iterable[Mapping[str, Any]], scene: Scene, omitting: Omitting) -> Iterator[Loose]:
    """What these facts of hooks say was committed, without what catalogs keep to themselves."""
    for fact in facts:
        for each in all_formats():
            found = each.loose(fact, scene) if isinstance(each, TellsLoose) else None
            if found is not None:
                shown = tuple(omitting.output(output) for output in found.outputs if omitting.shows(output))
                if shown or not found.outputs:
                    yield replace(found, outputs=shown)
