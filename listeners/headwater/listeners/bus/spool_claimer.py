"""Claims spools in a remote shared directory, copies them here and ships them.

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
from headwater.listeners.bus.handover import INCOMING
from headwater.listeners.bus.remote_files import RemoteError, RemoteFile, RemoteFiles
from headwater.listeners.bus.remote_spools import (
    CLAIM,
    MARKER,
    ORIGIN,
    RemoteSpool,
    download,
    free_name,
    list_remote_spools,
    listener_positions,
    upload,
)

_LOG = logging.getLogger(__name__)
LEASE_SECONDS: Final = 600.0
"""A claim that wasn't renewed for so long holds no more."""
_RENEW_SECONDS: Final = 120.0
_SPARE_BYTES: Final = 64 << 20
_MAX_BYTES: Final = 1 << 20


@dataclass(frozen=True)
class SpoolOrigin:
    """What a local spool is a copy of."""

    uri: str
    name: str
    positions: dict[str, int]
    """Where its listeners stood over there."""


def read_origin(spool: Path) -> SpoolOrigin | None:
    """What a spool is a copy of; None where it is nobody's copy."""
    try:
        data = read_file(OS_FILES, spool / ORIGIN, _MAX_BYTES)
        return None if data is None else SpoolOrigin(**json.loads(data))
    except (OSError, ValueError, TypeError):
        return SpoolOrigin("", "", {})  # of something, and nobody can say of what


class SpoolClaimer:
    """For the shipping thread only."""

    def __init__(self, uri: str, files: RemoteFiles, place: Callable[[], Path | None]) -> None:
        self.uri = uri
        self._files = files
        self._place = place
        self._owner = str(uuid4())
        self._known: dict[str, RemoteSpool] = {}
        self._renewed: dict[Path, float] = {}

    @property
    def known(self) -> tuple[RemoteSpool, ...]:
        """The spools that were over there at the last look, and haven't been delivered from here since."""
        return tuple(self._known.values())

    def look(self) -> tuple[RemoteSpool, ...]:
        """The spools that are over there now. A RemoteError."""
        self._known = list_remote_spools(self._files, self._known)
        return self.known

    def take(self, remote_spool: RemoteSpool) -> Path | None:
        """Claim it and copy it here; None where somebody else ships it, or there is no room."""
        place = self._place()
        if place is None or (place / remote_spool.name).exists() or not self._has_room(place, remote_spool):
            return None
        if not self._claim(remote_spool.name):
            return None
        incoming, copy = place / INCOMING / remote_spool.name, place / remote_spool.name
        shutil.rmtree(incoming, ignore_errors=True)
        try:
            download(remote_spool, self._files, incoming)
            origin = {"uri": self.uri, "name": remote_spool.name, "positions": dict(remote_spool.positions)}
            (incoming / ORIGIN).write_text(json.dumps(origin))
            incoming.rename(copy)
        except (OSError, RemoteError):
            shutil.rmtree(incoming, ignore_errors=True)
            self._release(remote_spool.name)
            raise
        self._renewed[copy] = time.monotonic()
        _LOG.info("%s is taken up from %s", copy.name, self.uri)
        return copy

    def hold(self, copy: Path) -> bool:
        """Whether it may be shipped from here: it is still over there, and nobody else ships it. One that isn't there
        any more was delivered by somebody else, and the copy goes too."""
        origin = read_origin(copy)
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
        if time.monotonic() - self._renewed.get(copy, time.monotonic()) > _RENEW_SECONDS:
            self._renewed[copy] = time.monotonic()
            if (origin := read_origin(copy)) is not None:
                self._quietly(lambda: self._files.write(f"{origin.name}/{CLAIM}", self._claim_bytes(), replace=True))

    def finish(self, copy: Path) -> None:
        """All of it is delivered: it isn't needed over there any more. A RemoteError where it stays."""
        if (origin := read_origin(copy)) is not None:
            # the marker first: a directory of which half is gone must not be taken for a spool
            self._files.remove(f"{origin.name}/{MARKER}")
            self._files.remove(origin.name)
            self._known.pop(origin.name, None)
            self._renewed.pop(copy, None)

    def give_back(self, copy: Path) -> None:
        """Nothing more can be done here: somebody else may go on from where it is."""
        origin = read_origin(copy)
        if origin is None or copy not in self._renewed:
            return
        if listener_positions(copy) != origin.positions:
            upload(copy, self._files, free_name(self._files, origin.name))
            self.finish(copy)
        else:
            self._release(origin.name)
        self._renewed.pop(copy, None)
        remove_journal(copy)

    def give_all_back(self) -> None:
        for copy in list(self._renewed):
            self._quietly(lambda copy=copy: self.give_back(copy))  # type: ignore[misc]

    def _has_room(self, place: Path, remote_spool: RemoteSpool) -> bool:
        return shutil.disk_usage(place).free > remote_spool.size + _SPARE_BYTES

    def _claim(self, name: str) -> bool:
        """Whether it is ours to ship now."""
        path = f"{name}/{CLAIM}"
        claim = next((each for each in self._files.names(name) if each.name == CLAIM), None)
        if claim is None:
            return self._files.write(path, self._claim_bytes(), replace=False)
        if self._owner_of(path) == self._owner:
            return True
        if _is_valid(claim):
            return False
        self._files.write(path, self._claim_bytes(), replace=True)
        return self._owner_of(path) == self._owner

    def _owner_of(self, path: str) -> str:
        try:
            return str(json.loads(self._files.read(path) or b"{}").get("owner", ""))
        except (ValueError, AttributeError):
            return ""

    def _release(self, name: str) -> None:
        self._quietly(lambda: self._files.remove(f"{name}/{CLAIM}"))

    def _claim_bytes(self) -> bytes:
        return json.dumps({"owner": self._owner, "host": os.uname().nodename, "pid": os.getpid()}).encode()

    def _quietly(self, do: Callable[[], object]) -> None:
        try:
            do()
        except (HeadwaterError, OSError) as e:
            _LOG.warning("%s: %s", self.uri, e)


def _is_valid(claim: RemoteFile) -> bool:
    return time.time() - claim.modified < LEASE_SECONDS
