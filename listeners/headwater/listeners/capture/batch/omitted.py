"""What the options of catalogs keep from being told: the driver leaves it out, and CatalogOptionsDeclared says so."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from headwater.events import CatalogOptionsDeclared, Output, Place
from headwater.listeners.capture.batch.shapes import ShapeOfWrite, without_leaf, without_part
from headwater.listeners.capture.catalog.options import Declarations, Omitted
from headwater.listeners.capture.scene import Scene

_NOTHING: Final = Omitted()
_NO_VERSION: Final = {"snapshot": None, "version": None, "parent": None, "candidates": ()}


class Omitting:
    """For one producer."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._declarations = Declarations()

    def declared(self, shape: ShapeOfWrite) -> Iterator[CatalogOptionsDeclared]:
        """What has to be told of the catalogs whose tables these are: once each."""
        places = [*shape.sources, *(reached.part.target.sink for reached in shape.parts)]
        for name in dict.fromkeys(place.table.catalog for place in places if place.table is not None):
            yield from self.used(name)

    def used(self, name: str) -> Iterator[CatalogOptionsDeclared]:
        """The same of the catalog that has this name."""
        catalog = self._scene.catalog_called(name)
        if catalog is not None:
            yield from self._declarations.of(catalog)

    def shown(self, shape: ShapeOfWrite) -> ShapeOfWrite | None:
        """The shape without the tables of catalogs that keep them; None where nothing that is written stays."""
        for number in reversed(range(len(shape.leaves))):
            if self.of(shape.sources[shape.leaves[number].source]).table_lineage:
                shape = without_leaf(shape, number)
        had = bool(shape.parts)
        for number in reversed(range(len(shape.parts))):
            if self.of(shape.parts[number].part.target.sink).table_lineage:
                shape = without_part(shape, number)
        return None if had and not shape.parts else shape

    def shows(self, output: Output) -> bool:
        return not self.of(output).table_lineage

    def output(self, output: Output) -> Output:
        """Without its versions, where its catalog keeps them."""
        return output.model_copy(update=_NO_VERSION) if self.of(output).data_lineage else output

    def of(self, place: Place) -> Omitted:
        catalog = None if place.table is None else self._scene.catalog_called(place.table.catalog)
        return _NOTHING if catalog is None else self._declarations.omits(catalog)
