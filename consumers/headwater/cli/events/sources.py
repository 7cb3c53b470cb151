"""Where events are read from: `log:DIR`, a local log with its partitions, or `spool:DIR`, journals at any depth."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path

from headwater.errors import ConfigurationError
from headwater.journal import LocalLog
from headwater.journal.segment import SUFFIX
from headwater.publishers.log import data_directory

_DEEPEST = 3
"""A spool's journal lies at most so many directories below the one that is named."""


class JournalDirectory(ABC):
    """A directory with journals, which can come and go while it is read."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @abstractmethod
    def journals(self) -> Mapping[str, Path]:
        """Return the journals that are there now, by their names."""

    @abstractmethod
    def check(self) -> None:
        """Raise a ConfigurationError where this can't be what was meant."""


class LogDirectory(JournalDirectory):
    """The partitions of a local log."""

    def journals(self) -> Mapping[str, Path]:
        if not self.directory.is_dir():
            return {}
        return {name: self.directory / name for name in LocalLog.open(self.directory).partitions()}

    def check(self) -> None:
        if self.journals() or not any(self.directory.iterdir()):
            return
        if any(_journals_in(self.directory)):
            raise ConfigurationError(f"{self.directory} isn't a log, but holds journals: write spool:{self.directory}")
        raise ConfigurationError(f"{self.directory} isn't a log: there is no partition-0000 in it. Which one is it?")


class SpoolDirectory(JournalDirectory):
    """One journal, or a directory of journals such as `spark.headwater.spool.dir`."""

    def journals(self) -> Mapping[str, Path]:
        found = list(_journals_in(self.directory))
        if found == [self.directory]:
            return {self.directory.name: self.directory}
        return {str(path.relative_to(self.directory)): path for path in found}

    def check(self) -> None:
        if not self.journals() and any(self.directory.iterdir()):
            raise ConfigurationError(f"{self.directory} isn't a spool: neither it nor what is in it holds a journal")


def source_of(text: str) -> JournalDirectory:
    """Read what `--from` names; a ValueError where that isn't written as it should be."""
    scheme, _, place = text.partition(":")
    if scheme == "log":
        return LogDirectory(Path(place or data_directory()).expanduser())
    if scheme == "spool" and place:
        return SpoolDirectory(Path(place).expanduser())
    raise ValueError(f"{text!r} isn't a source: write log:DIR or spool:DIR")


def check_source(source: JournalDirectory) -> JournalDirectory:
    """Return the source if it can be read and is what it was called."""
    directory = source.directory
    if not directory.is_dir():
        what = "isn't a directory" if directory.exists() else "isn't there"
        raise ConfigurationError(f"{directory} {what}: name the directory of a log or a spool, --from log:DIR")
    if not os.access(directory, os.R_OK | os.X_OK):
        raise ConfigurationError(f"{directory} can't be read by this user: ask its owner for the right to")
    source.check()
    return source


def _journals_in(directory: Path) -> Iterator[Path]:
    """Yield directories that have segments, and look at nothing below them."""
    for place, below, files in os.walk(directory):
        path = Path(place)
        if any(name.endswith(SUFFIX) for name in files):
            below.clear()
            yield path
        elif len(path.relative_to(directory).parts) >= _DEEPEST:
            below.clear()
        below.sort()
