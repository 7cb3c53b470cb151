"""The versions that a commit read and made, in words, for targets that have no word for a version of a dataset."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.events.jobs import DatasetRef, Input, Output, ReadMode


def read_version(read: Input) -> str:
    """Return which version was read: `snapshot 7`, or `changes after 5 up to snapshot 9`."""
    version = _version(read, read.snapshot, read.version, read.candidates)
    if read.mode is not ReadMode.CHANGES:
        return version
    since = read.since and (read.since.version if read.since.snapshot is None else read.since.snapshot)
    return f"changes up to {version}" if since is None else f"changes after {since} up to {version}"


def made_version(made: Output) -> str:
    """Return which version was made, and on which one: `snapshot 12 on 11`."""
    version = _version(made, made.snapshot, made.version, made.candidates)
    return version if made.parent is None else f"{version} on {made.parent}"


def _version(ref: DatasetRef, snapshot: int | None, version: str | None, candidates: Sequence[int]) -> str:
    """Return a version in words. One of several that may be it is never told as the one."""
    if snapshot is not None:
        text = f"snapshot {snapshot}"
    elif version is not None:
        text = f"version {version}"
    elif candidates:
        text = f"one of the snapshots {', '.join(map(str, candidates))}"
    else:
        text = "version unknown"
    return text if ref.branch is None else f"{text} of branch {ref.branch}"
