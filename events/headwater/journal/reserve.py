"""Room set aside on the device for the one record that must still get in when there is none left."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path

from headwater.journal.files import CREATE, Files, open_descriptor, read_file


class Reserve:
    """A file that only takes up room, and is removed to give it back."""

    def __init__(self, files: Files, directory: Path, size: int) -> None:
        self._files = files
        self._path = directory / "reserve"
        self._size = size
        self._there = False
        self._lock = threading.Lock()
        with contextlib.suppress(OSError):
            self._there = size > 0 and read_file(files, self._path, 1) is not None

    def renew(self) -> bool:
        """Set the room aside, if there is any; whether it is. Called now and then, so failing is no matter."""
        with self._lock:
            if self._there or not self._size:
                return True
            try:
                with open_descriptor(self._files, self._path, CREATE) as descriptor:
                    self._files.allocate(descriptor, self._size)
                self._there = True
            except OSError:
                with contextlib.suppress(OSError):  # half of it would take room that others need
                    self._files.remove(self._path)
            return self._there

    def release(self) -> bool:
        """Give the room back; whether there was any."""
        with self._lock:
            was_there, self._there = self._there, False
            try:
                if was_there:
                    self._files.remove(self._path)
            except OSError:
                return False
            return was_there
