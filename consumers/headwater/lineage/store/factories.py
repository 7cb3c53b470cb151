"""The entry point `jdbc` of `headwater.lineage_meta`: the store in a database."""

from __future__ import annotations

from headwater.lineage.api import LineageMeta, LineageMetaContext
from headwater.lineage.store.opening import open_store
from headwater.lineage.store.options import StoreOptions


class JdbcLineageMetaFactory:
    def identifier(self) -> str:
        return "jdbc"

    def create(self, context: LineageMetaContext) -> LineageMeta:
        """Of a catalog's options; what isn't `lineage-meta` or begins with `jdbc.` is let be."""
        from headwater.lineage.meta.database import DatabaseLineageMeta  # noqa: PLC0415 - it stands on this package

        store = open_store(StoreOptions.of_catalog(context.options))
        return DatabaseLineageMeta(store.engine, where=store.target.words)
