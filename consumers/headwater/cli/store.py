"""`--store`, the flag of every command that asks a store, and `headwater store`: how stores are made and kept."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Final

from headwater.cli.commands import command
from headwater.cli.exits import Exit
from headwater.cli.flags import Flags, pair
from headwater.cli.output import CommandOutput, Size
from headwater.errors import ConfigurationError

if TYPE_CHECKING:  # SQLAlchemy is imported where a store is opened
    from headwater.lineage.store import Store, StoreOptions

MAIN: Final = ""
"""What the main store is called among several; the others are called as their catalogs are."""
_EXAMPLE: Final = "--store postgresql://owner@db/lineage"
_TO_DO: Final = {
    "CURRENT": None,
    "EMPTY": "there is no store: `headwater store init --store {where}` makes one",
    "UNMARKED": "there are tables that nobody marked: `headwater store init --store {where}` says more",
    "OLDER": "run `headwater store migrate --store {where}` as somebody who may change its tables",
    "NEWER": "a newer headwater has changed it: install that one here",
}


def add_store(parser: Flags) -> None:
    """Add `--store`."""
    text = (
        "the lineage store: postgresql://host/db, mariadb://host/db, the file of a SQLite database, or "
        "iceberg:CATALOG.NAMESPACE"
    )
    parser.flag("store", _url, None, text, "URL")


def add_stores(parser: Flags) -> None:
    """Add `--store`, and `--catalog-store` for a command that has to know where the rows of each catalog are."""
    add_store(parser)
    parser.flags("catalog-store", pair, "another store for the rows of one catalog", "CATALOG=URL")


@contextmanager
def opened_stores(given: Any) -> Generator[dict[str, Store]]:
    """Open all stores for writing, by names."""
    with ExitStack() as stack:
        stores = {MAIN: stack.enter_context(open_given_store(given, readonly=False))}
        for catalog, url in given.catalog_store:
            if catalog in stores:
                raise ConfigurationError(f"the catalog {catalog} has two stores: name one")
            stores[catalog] = stack.enter_context(open_given_store(given, readonly=False, url=url))
        yield stores


def open_given_store(
    given: Any, *, readonly: bool = True, open_it: Callable[..., Store] | None = None, url: str | None = None
) -> Store:
    """Open the store that the flag or the variable names, or another; whoever opens it closes it."""
    from headwater.lineage.store import BorrowedStore, Store, open_store  # noqa: PLC0415

    if isinstance(given.store, Store):  # a server's, which stays open
        return BorrowedStore(given.store)
    return (open_it or open_store)(options_of(given, url), readonly=readonly)


def options_of(given: Any, url: str | None = None) -> StoreOptions:
    """Return where the store is and who opens it. What isn't in the URL can be in HEADWATER_STORE_JDBC_USERNAME,
    HEADWATER_STORE_JDBC_PASSWORD, HEADWATER_STORE_JDBC_PASSWORD_FILE …"""
    if given.store is None:
        raise ConfigurationError("which store? Name it by --store URL, or in the variable HEADWATER_STORE")
    from headwater.lineage.store import StoreOptions  # noqa: PLC0415

    return StoreOptions.from_environment(os.environ, url or given.store)


def _url(text: str) -> str:
    if not text.strip():
        raise ValueError("it is empty: name a store by its URL")
    return text.strip()


def _catalog(parser: Flags) -> None:
    text = "whose rows the PIP-5 compatible views show, where they are made for several: its name, or type:location"
    parser.flag("catalog", str, None, text, "CATALOG")


@command(
    "Make the tables and the views of a store where there are none; safe to repeat. It needs the right to make them.",
    f"headwater store init {_EXAMPLE}",
    flags=[add_store, _catalog],
)
def init(given: Namespace, output: CommandOutput) -> int:
    from headwater.lineage.store.creation import make_views  # noqa: PLC0415

    with open_given_store(given, readonly=False) as store:
        make_views(store.engine, store.target, given.catalog)
        where, views = store.target.words, store.target.database
    output.outcome(f"the store in {where} is ready, its views are in {views}", {"store": where, "views": views})
    return Exit.DONE


@command(
    "Bring the tables of a store to the version that this headwater knows. There is no way back: make a backup first.",
    f"headwater store migrate {_EXAMPLE}",
    flags=[add_store],
)
def migrate(given: Namespace, output: CommandOutput) -> int:
    from headwater.lineage.store.creation import SchemaState  # noqa: PLC0415
    from headwater.lineage.store.status import read_status  # noqa: PLC0415

    before = read_status(options_of(given))
    fields = {"store": before.where, "was": before.version, "is": before.known}
    if before.standing is SchemaState.EMPTY:
        words = f"there is no store in {before.where} yet: `headwater store init --store {before.where}` makes one"
        output.outcome(words, {**fields, "is": None})
        return Exit.FAILED
    with open_given_store(given, readonly=False) as store:
        was = (
            f"was at {before.version}, and is" if before.standing is SchemaState.OLDER else "needn't be migrated: it is"
        )
        output.outcome(f"the store in {store.target.words} {was} at {before.known}", fields)
    return Exit.DONE


@command(
    """Make the partitions of the next months in PostgreSQL, and move the rows that came before their month had one.

A writer does this once a day where it may; run it monthly where it may not.""",
    f"headwater store maintain {_EXAMPLE}",
    flags=[add_store],
)
def maintain(given: Namespace, output: CommandOutput) -> int:
    from headwater.lineage.maintenance.partitions import make_partitions  # noqa: PLC0415

    with open_given_store(given, readonly=False) as store:
        made = make_partitions(store.engine)
        output.table("partitions", ("partition", "rows moved into it"), made, "Partitions that were made")
    return Exit.DONE


@command(
    """Show which version of the tables is there, whether this headwater can use it, and what is to be done.

Exit code 0 if nothing is to be done, 1 if something is.""",
    f"headwater store status {_EXAMPLE}",
    flags=[add_store],
)
def status(given: Namespace, output: CommandOutput) -> int:
    from headwater.lineage.store.status import read_status  # noqa: PLC0415

    options = options_of(given)
    found = read_status(options)
    to_do = _TO_DO[found.standing.value]
    fields = {
        "where": found.where,
        "tables": found.standing.value,
        "version": found.version,
        "this headwater knows": found.known,
        "views": f"in {found.views}" if found.has_views else f"none in {found.views}",
        "rows outside of months": found.in_rest,
        "lost rows, noticed": found.set_back,
        "beside it": _beside(options),
        "to do": to_do and to_do.format(where=found.where),
    }
    output.record("store", fields)
    return Exit.DONE if to_do is None else Exit.FAILED


@command(
    "Count the rows of each table, and show how large it is, from when to when it reaches, and what removes its rows.",
    f"headwater store size {_EXAMPLE}",
    flags=[add_store],
)
def size(given: Namespace, output: CommandOutput) -> int:
    from headwater.lineage.maintenance.aging import REMOVED_BY  # noqa: PLC0415
    from headwater.lineage.sql.errors import translate_errors  # noqa: PLC0415
    from headwater.lineage.store.status import size_of  # noqa: PLC0415

    with open_given_store(given) as store:
        with translate_errors(store.target.words), store.engine.connect() as connection:
            found = size_of(connection)
        rows = [
            (table.table, table.rows, _bytes(table.bytes), table.oldest, table.newest, REMOVED_BY.get(table.table, ""))
            for table in found.tables
        ]
        output.table("tables", ("table", "rows", "size", "oldest", "newest", "rows are removed by"), rows)
        total = {"rows": found.rows, "size": _bytes(found.bytes), "oldest": found.oldest, "newest": found.newest}
        output.record("total", {"store": store.target.words, **total})
    return Exit.DONE


def _beside(options: StoreOptions) -> list[str]:
    """Return what replays left beside the store."""
    from headwater.errors import HeadwaterError  # noqa: PLC0415
    from headwater.lineage.replacement.areas import Area, has_area  # noqa: PLC0415

    words = {
        Area.FRESH: "tables of an unfinished replay (`headwater replay --abort` removes them)",
        Area.FORMER: "the tables before the last replay (`headwater replay --drop-former` removes them)",
    }
    try:
        return [text for area, text in words.items() if has_area(options, area)]
    except HeadwaterError:
        return []  # a store in memory has nothing beside it


def _bytes(number: int | None) -> Size | None:
    return None if number is None else Size(number)
