"""Exchanges a directory for one with other files, at once for whoever lists it.

The new directory is made of links beside the old one, and Linux exchanges their names. Another process may put a file
into the old one just before that, or just after: the system may have found the old directory by its name before the
names were exchanged. So files that are wanted and ended up aside are brought back, and whoever puts a file into a
directory looks whether it is there before giving up the file's other name.
"""

from __future__ import annotations

import ctypes
import os
import shutil
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from headwater.consumers.archive.files import FILE_NAME

PREFIX: Final = "exchange-"
_AT_CWD: Final = -100
_EXCHANGE: Final = 2
"""Linux's AT_FDCWD and RENAME_EXCHANGE."""


def replace_files(
    place: Path, aside: Path, *, add: Iterable[Path], gone: Collection[str], wanted: Callable[[], Collection[str]]
) -> bool:
    """Add files to a directory, and remove others, at once. `wanted` returns the names that belong there now.

    Return False, and change nothing, where the system or the file system can't.
    """
    if not place.is_dir():
        return False
    aside.mkdir()
    for each in add:
        with suppress(FileNotFoundError):  # it is in its place already
            os.link(each, aside / each.name)
    for each in place.iterdir():
        if each.name not in gone:
            with suppress(FileExistsError, FileNotFoundError):  # another process replaced it, or let it expire
                os.link(each, aside / each.name)
    is_exchanged = _exchange(aside, place)
    if is_exchanged:
        there = [each.name for each in place.iterdir()]
        names = wanted()  # after looking: what comes later is in it
        take_back(aside, place, names)
        _remove_others(place, there, names)
    shutil.rmtree(aside)
    return is_exchanged


def _remove_others(place: Path, there: Iterable[str], wanted: Collection[str]) -> None:
    """Remove the files that another process replaced between the look at the old directory and the exchange."""
    for name in there:
        if FILE_NAME.fullmatch(name) and name not in wanted:
            (place / name).unlink(missing_ok=True)


def publish_file(waiting: Path, place: Path) -> None:
    """Bring a file to its place, unless another process has done that, or has removed the file since."""
    while waiting.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        # FileNotFoundError: somebody else brought the file there, or removed the empty directory
        with suppress(FileExistsError, FileNotFoundError):
            os.link(waiting, place)
        if place.exists():
            waiting.unlink(missing_ok=True)
            return


def take_back(aside: Path, place: Path, wanted: Collection[str]) -> None:
    """Bring files that belong into the directory back into it."""
    for each in [*aside.iterdir()]:
        if each.name in wanted:
            with suppress(FileExistsError):
                os.link(each, place / each.name)


def _exchange(first: Path, second: Path) -> bool:
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except AttributeError:
        return False
    status: int = rename(_AT_CWD, os.fsencode(first), _AT_CWD, os.fsencode(second), _EXCHANGE)
    return status == 0
