"""Takes up what drivers handed over: which files somebody here wants, and what becomes of them."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping

from headwater.errors import HeadwaterError
from headwater.listeners.bus.durations import OnceLogger
from headwater.listeners.bus.handover import Handover
from headwater.listeners.bus.handover_file import HandoverFile, HandoverFileError
from headwater.listeners.bus.listener_errors import describe_error

_LOG = logging.getLogger(__name__)


class HandoverInbox:
    """For the thread that ships."""

    def __init__(self, handover: Handover) -> None:
        self.names: tuple[str, ...] = ()
        """The files that were there at the last look, and haven't been delivered from here since."""
        self._handover = handover
        self._current: HandoverFile | None = None
        """What is taken up, with the places of its listeners, until nothing more can be done with it here."""
        self._waiting: dict[str, Collection[str]] = {}
        """For whom each file is."""
        self._refused: dict[str, str] = {}
        self._error = ""
        self._errors = OnceLogger()

    @property
    def error(self) -> str:
        """Why nobody can look there, or take something up, now."""
        return "; ".join(filter(None, [self._error, *(f"{name}: {why}" for name, why in self._refused.items())]))

    def look(self) -> Mapping[str, int]:
        """The files there are, with their sizes, the one that is taken up first; none where nobody can look."""
        try:
            sizes = self._handover.sizes()
        except HeadwaterError as e:
            self._note(e)
            return {}
        self._error = ""
        self._errors.reset()
        current = None if self._current is None else self._current.name
        if current is not None and current not in sizes:
            self._drop()  # somebody else delivered it
        self.names = tuple(sorted(sizes, key=lambda name: (name != current, name)))
        self._waiting = {name: waiting for name, waiting in self._waiting.items() if name in sizes}
        self._refused = {name: why for name, why in self._refused.items() if name in sizes}
        return {name: sizes[name] for name in self.names}

    def take(self, name: str, size: int, wanted: Collection[str]) -> HandoverFile | None:
        """Take a file up that one of these listeners waits for, or nobody; None for another, and for none of ours."""
        try:
            if name in self._refused or not self._is_for(name, wanted):
                return None
            if self._current is None or self._current.name != name:
                self._put_back()
                self._current = self._handover.fetch(name, size)
        except HandoverFileError as e:
            self._refused[name] = str(e)
            _LOG.warning("%s/%s isn't taken up, and stays there: %s", self._handover.where, name, e)
            return None
        except (HeadwaterError, OSError) as e:
            self._note(e)
            return None
        return self._current

    def finish(self, file: HandoverFile) -> bool:
        """All of it is acknowledged: it goes. Whether it did."""
        try:
            self._handover.remove(file.name)
        except HeadwaterError as e:
            self._note(e)
            return False
        self.names = tuple(name for name in self.names if name != file.name)
        self._drop()
        return True

    def leave_rest(self, file: HandoverFile) -> None:
        """Nothing more can be done here. What others wait for goes into a file of its own before this one goes, so that
        nobody gets again from each driver what it has got."""
        if file.positions() == file.header.positions:
            self._drop()
            return
        try:
            self._handover.put(file.name.partition(".")[0], file.rest, file)
        except HeadwaterError as e:
            self._note(e)
        else:
            self.finish(file)

    def close(self, deadline: float) -> None:
        """Leave what is taken up to somebody else, by then."""
        self._handover.until(deadline)
        self._put_back()
        self._handover.close()

    def _is_for(self, name: str, wanted: Collection[str]) -> bool:
        if name not in self._waiting:
            self._waiting[name] = self._handover.header(name).waiting
        return not self._waiting[name] or not {*wanted}.isdisjoint(self._waiting[name])

    def _put_back(self) -> None:
        if self._current is not None:
            self.leave_rest(self._current)
        self._drop()

    def _drop(self) -> None:
        if self._current is not None:
            self._current.close()
        self._current = None

    def _note(self, error: Exception) -> None:
        self._error = describe_error(error)
        if self._errors.is_new(self._error):
            _LOG.warning("what was handed over can't be taken up now: %s", error)
