"""What is to be said of a SQLite file before SQLite says it in its own words, which tell nothing of why."""

from __future__ import annotations

from pathlib import Path

from headwater.lineage.sql.troubles import StoreAccessError, StoreSchemaError
from headwater.lineage.store.options import Target
from headwater.lineage.store.urls import Database


def check_file(target: Target, *, readonly: bool, create: bool) -> None:
    if target.kind is not Database.SQLITE or target.url.database is None:
        return
    path = Path(target.url.database)
    if not path.absolute().parent.is_dir():
        raise StoreAccessError(
            f"there is no directory {path.absolute().parent}: make it, or mend the path of the store"
        )
    if path.is_dir():
        raise StoreAccessError(f"{path} is a directory: name a file in it")
    if not path.exists() and (readonly or not create):
        raise StoreSchemaError(f"there is no store in {path} yet: `headwater store init --store {path}` makes one")
