"""Taking up what was handed over to a shared directory that is no path of this machine.

A spool is claimed, copied under `spool.dir` and shipped from there as any dead driver's. What stands over there stays
until all of it is delivered; so whoever took it up may die at any moment, and nothing is lost with him. A claim lapses
when it isn't renewed. Two that ship one spool all the same make the same events twice, which is allowed.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import uuid4

from headwater.errors import HeadwaterError
from headwater.journal import remove_journal
from headwater.journal.files import OS_FILES, read_file
from headwater.listeners.bus.handed import (
    CLAIM,
    MARKER,
    TAKEN,
    Handed,
    download,
    free_name,
    look_there,
    positions_of,
    upload,
)
from headwater.listeners.bus.handover import INCOMING
from headwater.listeners.bus.remote import RemoteError, RemoteFile, RemoteFiles

_LOG = logging.getLogger(__name__)
LEASE: Final = 600.0
"""A claim that wasn't renewed for so long holds no more."""
_RENEW: Final = 120.0
_SPARE: Final = 64 << 20
_LARGEST: Final = 1 << 20


@dataclass(frozen=True)
class Origin:
    """What a local spool is a copy of."""

    uri: str
    name: str
    positions: dict[str, int]
    """Where its listeners stood over there."""


def origin_of(spool: Path) -> Origin | None:
    """What a spool is a copy of; None where it is nobody's copy."""
    try:
        data = read_file(OS_FILES, spool / TAKEN, _LARGEST)
        return None if data is None else Origin(**json.loads(data))
    except (OSError, ValueError, TypeError):
        return Origin("", "", {})  # of something, and nobody can say of what


class Taker:
    """For the thread that ships."""

    def __init__(self, uri: str, files: RemoteFiles, place: Callable[[], Path | None]) -> None:
        self.uri = uri
        self._files = files
        self._place = place
        self._owner = str(uuid4())
        self._known: dict[str, Handed] = {}
        self._renewed: dict[Path, float] = {}

    @property
    def known(self) -> tuple[Handed, ...]:
        """The spools that were over there at the last look, and haven't been delivered from here since."""
        return tuple(self._known.values())

    def look(self) -> tuple[Handed, ...]:
        """The spools that are over there now. A RemoteError."""
        self._known = look_there(self._files, self._known)
        return self.known

    def take(self, handed: Handed) -> Path | None:
        """Claim it and copy it here; None where somebody else ships it, or there is no room."""
        place = self._place()
        if place is None or (place / handed.name).exists() or not self._has_room(place, handed):
            return None
        if not self._claim(handed.name):
            return None
        incoming, copy = place / INCOMING / handed.name, place / handed.name
        shutil.rmtree(incoming, ignore_errors=True)
        try:
            download(handed, self._files, incoming)
            origin = {"uri": self.uri, "name": handed.name, "positions": dict(handed.positions)}
            (incoming / TAKEN).write_text(json.dumps(origin))
            incoming.rename(copy)
        except (OSError, RemoteError):
            shutil.rmtree(incoming, ignore_errors=True)
            self._release(handed.name)
            raise
        self._renewed[copy] = time.monotonic()
        _LOG.info("%s is taken up from %s", copy.name, self.uri)
        return copy

    def hold(self, copy: Path) -> bool:
        """Whether it may be shipped from here: it is still over there, and nobody else ships it. One that isn't there
        any more was delivered by somebody else, and the copy goes too."""
        origin = origin_of(copy)
        if origin is None or origin.uri != self.uri:
            return origin is None
        if not any(each.name == MARKER for each in self._files.names(origin.name)):
            self._renewed.pop(copy, None)
            remove_journal(copy)
            return False
        is_held = self._claim(origin.name)
        if is_held:
            self._renewed[copy] = time.monotonic()
        return is_held

    def renew(self, copy: Path) -> None:
        """Now and then while it is shipped. What goes wrong may have it shipped twice."""
        if time.monotonic() - self._renewed.get(copy, time.monotonic()) > _RENEW:
            self._renewed[copy] = time.monotonic()
            if (origin := origin_of(copy)) is not None:
                self._quietly(lambda: self._files.write(f"{origin.name}/{CLAIM}", self._signed(), replace=True))

    def finish(self, copy: Path) -> None:
        """All of it is delivered: it isn't needed over there any more. A RemoteError where it stays."""
        if (origin := origin_of(copy)) is not None:
            # the marker first: a directory of which half is gone must not be taken for a spool
            self._files.remove(f"{origin.name}/{MARKER}")
            self._files.remove(origin.name)
            self._known.pop(origin.name, None)
            self._renewed.pop(copy, None)

    def give_back(self, copy: Path) -> None:
        """Nothing more can be done here: somebody else may go on from where it is."""
        origin = origin_of(copy)
        if origin is None or copy not in self._renewed:
            return
        if positions_of(copy) != origin.positions:
            upload(copy, self._files, free_name(self._files, origin.name))
            self.finish(copy)
        else:
            self._release(origin.name)
        self._renewed.pop(copy, None)
        remove_journal(copy)

    def give_all_back(self) -> None:
        for copy in list(self._renewed):
            self._quietly(lambda copy=copy: self.give_back(copy))  # type: ignore[misc]

    def _has_room(self, place: Path, handed: Handed) -> bool:
        return shutil.disk_usage(place).free > handed.size + _SPARE

    def _claim(self, name: str) -> bool:
        """Whether it is ours to ship now."""
        path = f"{name}/{CLAIM}"
        claim = next((each for each in self._files.names(name) if each.name == CLAIM), None)
        if claim is None:
            return self._files.write(path, self._signed(), replace=False)
        if self._owner_of(path) == self._owner:
            return True
        if _is_valid(claim):
            return False
        self._files.write(path, self._signed(), replace=True)
        return self._owner_of(path) == self._owner

    def _owner_of(self, path: str) -> str:
        try:
            return str(json.loads(self._files.read(path) or b"{}").get("owner", ""))
        except (ValueError, AttributeError):
            return ""

    def _release(self, name: str) -> None:
        self._quietly(lambda: self._files.remove(f"{name}/{CLAIM}"))

    def _signed(self) -> bytes:
        return json.dumps({"owner": self._owner, "host": os.uname().nodename, "pid": os.getpid()}).encode()

    def _quietly(self, do: Callable[[], object]) -> None:
        try:
            do()
        except (HeadwaterError, OSError) as e:
            _LOG.warning("%s: %s", self.uri, e)


def _is_valid(claim: RemoteFile) -> bool:
    return time.time() - claim.modified < LEASE
