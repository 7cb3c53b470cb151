"""`headwater store`: what an administrator does with a lineage store."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headwater.cli.exits import Exit
from headwater.cli.flags import Flags
from headwater.cli.output import Output
from headwater.cli.spool.units import Size
from headwater.cli.store import add_store, options_of

if TYPE_CHECKING:
    from headwater.lineage.store import Store

ACTIONS = {
    "init": "make the tables and the views where there are none; needs the right to make them",
    "migrate": "bring the tables to the version that this headwater knows; there is no way back",
    "upkeep": "PostgreSQL: make the partitions of the next months, and move what came before its month had one",
    "status": "say which version is there, whether it can be used, and what is to be done",
    "size": "count rows, and say how large each table is and from when to when it reaches",
}


def main(arguments: Sequence[str], output: Output) -> int:
    """Look after a lineage store."""
    epilog = "\n".join(["actions:", *(f"  {name:<10}{text}" for name, text in ACTIONS.items())])
    parser = Flags("headwater store", str(main.__doc__), epilog)
    parser.action(ACTIONS, "what to do")
    parsed = parser.parse_args(arguments)
    return _DO[parsed.action](_parse(parsed.action, parsed.arguments), output)


def _parse(action: str, arguments: Sequence[str]) -> Namespace:
    summary = ACTIONS[action]
    parser = Flags(f"headwater store {action}", f"{summary[0].upper()}{summary[1:]}.")
    add_store(parser)
    if action == "init":
        text = "whose rows the seed-shaped views show, where they are made for several: its name, or type:location"
        parser.flag("catalog", str, None, text, "CATALOG")
    return parser.parse_args(arguments)


def _init(given: Any, output: Output) -> int:
    from headwater.lineage.store.views import make_views  # noqa: PLC0415 - SQLAlchemy, for who needs it

    with _opened(given) as store:
        make_views(store.engine, store.target, given.catalog)
        output.note(f"the store in {store.target.words} is ready, its views are in {store.target.database}")
    return Exit.DONE


def _migrate(given: Any, output: Output) -> int:
    from headwater.lineage.store.status import status_of  # noqa: PLC0415
    from headwater.lineage.store.versions import Standing  # noqa: PLC0415

    before = status_of(options_of(given))
    if before.standing is Standing.EMPTY:
        output.note(f"there is no store in {before.where} yet: `headwater store init --store {before.where}` makes one")
        return Exit.FAILED
    with _opened(given) as store:
        was = f"was at {before.version}, and is" if before.standing is Standing.OLDER else "needn't be migrated: it is"
        output.note(f"the store in {store.target.words} {was} at {before.known}")
    return Exit.DONE


def _upkeep(given: Any, output: Output) -> int:
    from headwater.lineage.store.partitions import make_partitions  # noqa: PLC0415

    with _opened(given) as store:
        made = make_partitions(store.engine)
        output.table("Partitions that were made", ("partition", "rows moved into it"), made)
    return Exit.DONE


def _status(given: Any, output: Output) -> int:
    from headwater.lineage.store.status import status_of  # noqa: PLC0415

    status = status_of(options_of(given))
    advice = _ADVICE[status.standing.value]
    fields = {
        "tables": status.standing.value,
        "version": status.version,
        "this headwater knows": status.known,
        "views": f"in {status.views}" if status.has_views else f"none in {status.views}",
        "rows outside of months": status.in_rest,
        "to do": advice and advice.format(where=status.where),
    }
    output.record(status.where, fields)
    return Exit.DONE if advice is None else Exit.FAILED


def _size(given: Any, output: Output) -> int:
    from headwater.lineage.sql.troubles import troubles  # noqa: PLC0415
    from headwater.lineage.store import open_store  # noqa: PLC0415
    from headwater.lineage.store.size import size_of  # noqa: PLC0415

    with open_store(options_of(given), readonly=True) as store:
        with troubles(store.target.words), store.engine.connect() as connection:
            size = size_of(connection)
        rows = [(each.table, each.rows, _shown(each.bytes), each.oldest, each.newest) for each in size.tables]
        output.table("Tables", ("table", "rows", "size", "oldest", "newest"), rows)
        total = {"rows": size.rows, "size": _shown(size.bytes), "oldest": size.oldest, "newest": size.newest}
        output.record(store.target.words, total)
    return Exit.DONE


def _opened(given: Any) -> Store:
    from headwater.lineage.store import open_store  # noqa: PLC0415

    return open_store(options_of(given))


def _shown(number: int | None) -> Size | None:
    return None if number is None else Size(number)


_ADVICE = {
    "CURRENT": None,
    "EMPTY": "there is no store: `headwater store init --store {where}` makes one",
    "UNMARKED": "there are tables, and no word of whose: `headwater store init --store {where}` says more",
    "OLDER": "`headwater store migrate --store {where}`, by somebody who may change its tables",
    "NEWER": "a newer headwater has changed it: install that one here",
}
_DO: dict[str, Callable[[Any, Output], int]] = {
    "init": _init,
    "migrate": _migrate,
    "upkeep": _upkeep,
    "status": _status,
    "size": _size,
}
