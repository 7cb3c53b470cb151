"""What the options of catalogs keep from being reported: the driver leaves it out, and CatalogOptionsDeclared says
so."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from headwater.events import CatalogOptionsDeclared, Output
from headwater.events.jobs import DatasetRef
from headwater.listeners.capture.batch.write_lineage import WriteLineage, without_leaf, without_part
from headwater.listeners.capture.catalog.lineage_options import CatalogDeclarations, LineageSwitches
from headwater.listeners.capture.context import CaptureContext

_NO_SWITCHES: Final = LineageSwitches()
_WITHOUT_VERSION: Final = {"snapshot": None, "version": None, "parent": None, "candidates": ()}


class LineageFilter:
    """For one producer."""

    def __init__(self, context: CaptureContext) -> None:
        self._context = context
        self._declarations = CatalogDeclarations()

    def declare_catalogs_of(self, lineage: WriteLineage) -> Iterator[CatalogOptionsDeclared]:
        """What has to be reported of the catalogs whose tables these are: once each."""
        places = [*lineage.sources, *(resolved.part.target.sink for resolved in lineage.parts)]
        for name in dict.fromkeys(place.table.catalog for place in places if place.table is not None):
            yield from self.declare_catalog(name)

    def declare_catalog(self, name: str) -> Iterator[CatalogOptionsDeclared]:
        """The same of the catalog that has this name."""
        catalog = self._context.catalog_called(name)
        if catalog is not None:
            yield from self._declarations.of(catalog)

    def visible_part(self, lineage: WriteLineage) -> WriteLineage | None:
        """The shape without the tables of catalogs that keep them; None where nothing that is written stays."""
        for number in reversed(range(len(lineage.leaves))):
            if self.of(lineage.sources[lineage.leaves[number].source]).table_lineage:
                lineage = without_leaf(lineage, number)
        had = bool(lineage.parts)
        for number in reversed(range(len(lineage.parts))):
            if self.of(lineage.parts[number].part.target.sink).table_lineage:
                lineage = without_part(lineage, number)
        return None if had and not lineage.parts else lineage

    def shows(self, output: Output) -> bool:
        return not self.of(output).table_lineage

    def output(self, output: Output) -> Output:
        """Without its versions, where its catalog keeps them."""
        return output.model_copy(update=_WITHOUT_VERSION) if self.of(output).data_lineage else output

    def of(self, place: DatasetRef) -> LineageSwitches:
        catalog = None if place.table is None else self._context.catalog_called(place.table.catalog)
        return _NO_SWITCHES if catalog is None else self._declarations.omits(catalog)
