"""The seed-shaped views of a store, made by whoever opens it and may."""

from __future__ import annotations

import logging
from typing import Final

from sqlalchemy import Engine

from headwater.lineage.sql.seed_views import are_made, create_views
from headwater.lineage.sql.troubles import StoreAccessError, StoreBusyError, StoreRightsError, troubles
from headwater.lineage.store.engines.sqlite import WRITES
from headwater.lineage.store.options import Target

_LOG: Final = logging.getLogger(__name__)


def make_views(engine: Engine, target: Target, catalog: str | None = None) -> None:
    """Where they aren't there as they should be. `catalog` is whose rows they show, where that isn't clear."""
    with troubles(target.words):
        with engine.connect() as connection:
            if catalog is None and are_made(connection, target.database):
                return
        with engine.connect().execution_options(**{WRITES: True}) as connection, connection.begin():
            create_views(connection, target.database, catalog)


def are_there(engine: Engine, target: Target) -> bool:
    """As they should be, and as far as this user can see them."""
    try:
        with troubles(target.words), engine.connect() as connection:
            return are_made(connection, target.database)
    except (StoreRightsError, StoreAccessError):
        return False


def make_views_if_allowed(engine: Engine, target: Target) -> None:
    """Who may not make them works without them: they are for those who ask by SQL."""
    try:
        make_views(engine, target)
    except (StoreRightsError, StoreAccessError, StoreBusyError) as e:  # MySQL has no word for one may not look
        _LOG.info("the views in %s weren't made: %s", target.database, e)
