"""What those see of a spool who deliver it."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Protocol

from headwater.journal import JournalBatch

if TYPE_CHECKING:
    from typing_extensions import Self


class RecordTail(Protocol):
    """Reads records from an offset on; closes itself at the end of a with-block."""

    def read(self, max_records: int = ..., max_bytes: int = ..., timeout: float = ...) -> JournalBatch: ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class SpoolCursor(RecordTail, Protocol):
    """The same for one listener, whose place it keeps."""

    @property
    def committed(self) -> int: ...

    @property
    def position(self) -> int: ...

    def commit(self, position: int) -> None: ...

    def rewind(self) -> None: ...

    def close(self) -> None: ...


class RecordSource(Protocol):
    """What records can be read from, at any offset."""

    @property
    def directory(self) -> Path: ...

    def tail(self, position: int) -> RecordTail: ...


class SpoolSource(RecordSource, Protocol):
    """A spool as those see it who deliver it: the journal of this process, another one's, or a file handed over."""

    @property
    def next_offset(self) -> int:
        """The offset behind the last record that is known."""
        ...

    def cursor(self, name: str) -> SpoolCursor: ...
