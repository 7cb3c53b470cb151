"""What kind of an error a database raised: it refuses the data, or another transaction was in the way. All else is
`sql.troubles`' business."""

from __future__ import annotations

import struct
from typing import Any, Final

from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from headwater.lineage.sql.troubles import StoreDataError, kind_of, words_of

OF_DRIVERS: Final = (UnicodeError, OverflowError, struct.error)
"""What drivers raise of values that they can't even send."""
_SQLSTATES: Final = frozenset({"40001", "40P01"})
_NUMBERS: Final = frozenset({1205, 1213})
_LITE: Final = ("database is locked", "database table is locked")


def is_clash(error: BaseException) -> bool:
    """Two transactions were in each other's way, and this one was given up: begun again it goes through."""
    raised: Any = error.orig if isinstance(error, DBAPIError) else None
    if getattr(raised, "sqlstate", None) in _SQLSTATES:
        return True
    told: Any = next(iter(getattr(raised, "args", ())), None)
    return told in _NUMBERS or told in _LITE


def is_refusal(error: BaseException) -> bool:
    """The data is what the database doesn't take, and never will."""
    if isinstance(error, (StoreDataError, *OF_DRIVERS)):
        return True
    return isinstance(error, SQLAlchemyError) and kind_of(error) is StoreDataError


def refusal(error: BaseException, where: str) -> StoreDataError:
    """With the words of whoever refused it."""
    if isinstance(error, StoreDataError):
        return error
    words = words_of(error) if isinstance(error, SQLAlchemyError) else str(error)
    return StoreDataError(f"{where}: {words}: it is the row that is wrong, not the store")
