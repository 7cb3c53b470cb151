"""Which store a command asks: `--store URL`, or HEADWATER_STORE; and `--store-of`, where catalogs have their own."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Final

from headwater.cli.flags import Flags, pair
from headwater.errors import ConfigurationError

if TYPE_CHECKING:  # SQLAlchemy is imported where a store is opened
    from headwater.lineage.store import Store, StoreOptions

MAIN: Final = ""
"""What the main store is called among several; the others are called as their catalogs are."""


def add_store(parser: Flags) -> None:
    """The flag that every command has which asks a store."""
    text = "the lineage store: jdbc:postgresql://host/db, sqlite:////path/lineage.db, or a SQLAlchemy URL"
    parser.flag("store", _url, None, text, "URL")


def add_stores(parser: Flags) -> None:
    """For a command that has to know where the rows of each catalog are."""
    add_store(parser)
    parser.flags("store-of", pair, "another store for the rows of one catalog", "CATALOG=URL")


@contextmanager
def opened_stores(given: Any) -> Generator[dict[str, Store]]:
    """By names, to be written to."""
    with ExitStack() as stack:
        stores = {MAIN: stack.enter_context(opened(given, readonly=False))}
        for catalog, url in given.store_of:
            if catalog in stores:
                raise ConfigurationError(f"the catalog {catalog} has two stores: name one")
            stores[catalog] = stack.enter_context(opened(given, readonly=False, url=url))
        yield stores


def opened(
    given: Any, *, readonly: bool = True, open_it: Callable[..., Store] | None = None, url: str | None = None
) -> Store:
    """The store that the flag or the variable names, or another; whoever opens it closes it."""
    from headwater.lineage.store import open_store  # noqa: PLC0415

    return (open_it or open_store)(options_of(given, url), readonly=readonly)


def options_of(given: Any, url: str | None = None) -> StoreOptions:
    """Where it is and who opens it: what isn't in the URL can be in HEADWATER_STORE_JDBC_USERNAME,
    HEADWATER_STORE_JDBC_PASSWORD, HEADWATER_STORE_JDBC_PASSWORD_FILE …"""
    if given.store is None:
        raise ConfigurationError("which store? Name it by --store URL, or in the variable HEADWATER_STORE")
    from headwater.lineage.store import StoreOptions  # noqa: PLC0415

    return StoreOptions.from_environment(os.environ, url or given.store)


def _url(text: str) -> str:
    if not text.strip():
        raise ValueError("it is empty: name a store by its URL")
    return text.strip()
