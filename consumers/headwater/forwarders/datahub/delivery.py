"""How proposals go to DataHub: to its service, to its Kafka topic, or into files. All calls block their thread.

A TransientError means that it is to be tried again, RefusedContentError that one of the proposals will never be
accepted, and any other TerminalError that somebody has to change something.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, Protocol

from datahub.ingestion.sink.file import write_metadata_file

from headwater.errors import TerminalError, TransientError
from headwater.forwarders.datahub.kafka import KafkaTarget
from headwater.forwarders.datahub.options import DataHubConfig
from headwater.forwarders.datahub.proposals import Proposal
from headwater.forwarders.datahub.rest import RestTarget
from headwater.spi import CheckResult

_NO_SPACE: Final = "the file with proposals can't be written"


class DataHubTarget(Protocol):
    """Where proposals go."""

    def send(self, proposals: Sequence[Proposal], name: str, is_wanted: Callable[[], bool]) -> None:
        """Send them in order, and return when the target has them. `name` is one that the same events have again.
        Between requests it ends if they aren't wanted any more."""
        ...

    def check(self) -> Iterator[CheckResult]:
        """Check the target without writing to it."""
        ...

    def close(self) -> None: ...


def open_target(config: DataHubConfig) -> DataHubTarget:
    """Return the target that the options name. Nothing is asked of it yet."""
    if config.url is not None:
        return RestTarget(config)
    return KafkaTarget(config) if config.bootstrap_servers is not None else DirectoryTarget(config)


class DirectoryTarget:
    """Files in a directory, in the format of the SDK's own files. Their names are in the order of their events."""

    def __init__(self, config: DataHubConfig) -> None:
        self._directory: Final = config.directory or Path()

    def send(self, proposals: Sequence[Proposal], name: str, is_wanted: Callable[[], bool]) -> None:  # noqa: ARG002
        unfinished = self._directory / f".{name}"
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            write_metadata_file(unfinished, proposals)
            _sync(unfinished)
            unfinished.replace(self._directory / f"{name}.json")
        except PermissionError as e:
            raise TerminalError(f"{_NO_SPACE}: {e}: give this user the right to write there") from e
        except OSError as e:
            raise TransientError(f"{_NO_SPACE}: {e}") from e

    def check(self) -> Iterator[CheckResult]:
        there = next(each for each in (self._directory, *self._directory.absolute().parents) if each.exists())
        if not there.is_dir() or not os.access(there, os.W_OK):
            yield CheckResult.error(
                "directory", f"{there} can't be written to", "give this user the right to write there"
            )
        else:
            yield CheckResult.ok("directory", f"{self._directory} can be written to")

    def close(self) -> None:
        """Files are closed already."""


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
