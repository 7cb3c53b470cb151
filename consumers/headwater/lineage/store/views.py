"""Creates the PIP-5 compatible views of a store, if the user may."""

from __future__ import annotations

import logging
from typing import Final

from sqlalchemy import Engine

from headwater.lineage.sql.errors import StoreAccessError, StoreBusyError, StoreRightsError, translate_errors
from headwater.lineage.sql.locking import WRITES
from headwater.lineage.sql.pip5_views import are_views_current, create_views
from headwater.lineage.store.options import StoreAddress

_LOG: Final = logging.getLogger(__name__)


def make_views(engine: Engine, target: StoreAddress, catalog: str | None = None) -> None:
    """Create or update the views. `catalog` is the catalog that they show by default."""
    with translate_errors(target.words):
        with engine.connect() as connection:
            if catalog is None and are_views_current(connection, target.database):
                return
        with engine.connect().execution_options(**{WRITES: True}) as connection, connection.begin():
            create_views(connection, target.database, catalog)


def has_views(engine: Engine, target: StoreAddress) -> bool:
    """Return whether the views exist as this version defines them, as far as this user can see."""
    try:
        with translate_errors(target.words), engine.connect() as connection:
            return are_views_current(connection, target.database)
    except (StoreRightsError, StoreAccessError):
        return False


def make_views_if_allowed(engine: Engine, target: StoreAddress) -> None:
    """Create the views if the user may. A store works without them."""
    try:
        make_views(engine, target)
    except (StoreRightsError, StoreAccessError, StoreBusyError) as e:  # MySQL has no word for one may not look
        _LOG.info("the views in %s weren't made: %s", target.database, e)
