"""Hudi's archive: the instants that the active timeline no longer has, in Parquet files that a manifest lists.

Tables of version 8 and later have it below `.hoodie/timeline/history`. The archive of older tables is a log of Hudi's
own format, and isn't read.
"""

from __future__ import annotations

import io
import re
from typing import Any, Final, NamedTuple

from headwater.consumers.reconcile.files import LogFiles, read_json
from headwater.consumers.reconcile.model import TableLogError
from headwater.errors import ConfigurationError
from headwater.plugins import extra_command

_HISTORY: Final = ".hoodie/timeline/history"
_MANIFEST: Final = re.compile(r"manifest_(\d+)")
_COLUMNS: Final = ("instantTime", "completionTime", "action", "metadata")
_TRIES: Final = 3


class ArchivedInstant(NamedTuple):
    """A completed instant, as the archive has it."""

    requested: str
    completed: str
    action: str
    content: bytes


def read_archive(files: LogFiles) -> list[ArchivedInstant]:
    """Return the archive's instants, in no order; none where nothing was archived yet.

    A version of the archive is a manifest. Its files may be compacted away while they are read; then a newer version
    has their instants.
    """
    for _ in range(_TRIES):
        version = _newest_version(files)
        if version is None:
            return []
        found = _read_version(files, version)
        if found is not None:
            return found
    raise TableLogError(f"{_HISTORY} changed while it was read, {_TRIES} times: try again")


def _newest_version(files: LogFiles) -> int | None:
    content = files.read(f"{_HISTORY}/_version_")
    if content is not None and content.strip().isdigit():
        return int(content)
    # The file is written over, so that a reader may find it missing or empty for a moment.
    names = (each.name.partition("manifest_") for each in files.files_in(_HISTORY))
    return max(
        (int(number) for before, word, number in names if word and not before and number.isdigit()), default=None
    )


def _read_version(files: LogFiles, version: int) -> list[ArchivedInstant] | None:
    manifest = read_json(files, f"{_HISTORY}/manifest_{version}")
    if manifest is None:
        return None
    found: list[ArchivedInstant] = []
    for each in manifest["files"]:
        content = files.read(f"{_HISTORY}/{each['fileName']}")
        if content is None:
            return None
        found += _instants(content)
    return found


def _instants(content: bytes) -> list[ArchivedInstant]:
    try:
        from pyarrow import parquet  # noqa: PLC0415 - an extra
    except ImportError:
        message = "this table's older commits are in Hudi's archive; what reads it comes with " + extra_command(
            "reconcile"
        )
        raise ConfigurationError(message) from None
    rows: list[dict[str, Any]] = parquet.read_table(io.BytesIO(content), columns=list(_COLUMNS)).to_pylist()
    return [
        ArchivedInstant(each["instantTime"], each["completionTime"], each["action"], each["metadata"] or b"{}")
        for each in rows
    ]
