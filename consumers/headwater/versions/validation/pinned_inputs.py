"""Finds in lineage at which version a job has to read each of its inputs again."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from headwater.events.scalars import Format
from headwater.lineage.questions.datasets import Dataset
from headwater.lineage.questions.traversal.context import is_range
from headwater.lineage.questions.traversal.snapshot_rows import NameParts, SnapshotRead, SnapshotWrite
from headwater.lineage.questions.traversal.tombstone_lookup import hidden_text
from headwater.versions.validation.job_commits import JobCommits
from headwater.versions.validation.model import PinnedInput, ValidationObstacles

PINNABLE: Final = frozenset({Format.ICEBERG.value, Format.DELTA.value, Format.PAIMON.value, Format.HUDI.value})
"""Formats whose tables a lens pins, and whose results can be made."""
TOPIC: Final = Format.KAFKA.value
"""A lens pins topics, too, by their offsets."""
_ALLOW: Final = "name it by --allow to have it read as it is now"


class InputPlanner:
    """Finds the pins of one validation."""

    def __init__(
        self,
        job: JobCommits,
        names: Mapping[bytes, Dataset],
        pins: Mapping[str, str],
        obstacles: ValidationObstacles,
    ) -> None:
        self._job = job
        self._names = names
        self._pins = pins
        """Versions that the caller has chosen."""
        self._obstacles = obstacles
        self._used: set[str] = set()
        """Names of the caller's versions that are of inputs."""

    def plan(self, write: SnapshotWrite, outputs: Collection[bytes]) -> tuple[PinnedInput, ...]:
        """Return the pins of a snapshot's job. Tables that it writes aren't pinned: its script makes them again."""
        found: dict[bytes, list[SnapshotRead]] = {}
        for read in self._job.reads:
            if read.dataset is None:
                self._add_opaque(read)
            elif (key := self._job.table_of(read)) not in outputs:
                found.setdefault(key, []).append(read)
        pinned = [self._pin(key, reads, write) for key, reads in found.items()]
        given = [
            PinnedInput(table=name, names=(name,), snapshot=version, is_recorded=name in self._used)
            for name, version in self._pins.items()
        ]
        self._note_unused({self._names[key].label for key in outputs if key in self._names})
        known = [input_ for input_ in pinned if input_ is not None]
        return (*sorted(known, key=lambda input_: input_.table), *given)

    def _pin(self, key: bytes, reads: Sequence[SnapshotRead], write: SnapshotWrite) -> PinnedInput | None:
        dataset = self._names.get(key) or self._names[reads[0].dataset or b""]
        names = tuple(dict.fromkeys(_names_of(reads, [dataset, *self._other_places(reads)])))
        if self._is_chosen(dataset.label, names, reads):
            return None
        why = _why_unpinnable(reads)
        own = [read for read in reads if read.commit_id == write.commit_id] or reads
        snapshots = list(dict.fromkeys(map(_version_of, own)))
        if why is None and len(snapshots) > 1:
            why = f"it was read at {' and at '.join(map(str, snapshots))}: choose one by --pin {dataset.label}@SNAPSHOT"
        if why is not None:
            self._obstacles.add(f"{dataset.label} can't be pinned: {why}")
            return None
        if others := sorted({str(_version_of(read)) for read in reads} - {str(snapshots[0])}):
            other = f"another statement of the job read {dataset.label} at {', '.join(others)}"
            self._obstacles.note(f"{other}, and reads it at {snapshots[0]} now")
        return PinnedInput(
            table=dataset.label,
            names=names,
            snapshot=str(snapshots[0]),
            format=reads[0].format,
            generation=own[0].generation,
        )

    def _is_chosen(self, label: str, names: Sequence[str], reads: Sequence[SnapshotRead]) -> bool:
        """Return whether the caller says how a table is read, and note it if the recorded job read it otherwise."""
        pinned = [name for name in names if name in self._pins]
        self._used.update(pinned)
        chosen = self._pins[pinned[0]] if pinned else None
        now = f"at {chosen} now, as it is pinned" if chosen is not None else "as it is now, as that is allowed"
        if chosen is None and not any(map(self._obstacles.allows, names)):
            return False
        known = sorted({str(read.snapshot) for read in reads if read.snapshot is not None} - {chosen})
        if (hidden := _why_hidden(reads)) is not None:
            self._obstacles.note(
                f"of {label} it isn't shown at which version it was read, as {hidden}: it is read {now}"
            )
        elif known:
            self._obstacles.note(
                f"{label} was read at {', '.join(known)} when the snapshot was made, and is read {now}"
            )
        return True

    def _other_places(self, reads: Sequence[SnapshotRead]) -> list[Dataset]:
        return [self._names[read.dataset] for read in reads if read.dataset and read.dataset in self._names]

    def _note_unused(self, written: Collection[str]) -> None:
        for name in self._pins:
            if name in self._used:
                continue
            if name in written:
                why = "which the job writes: it reads it at that version, and not what it has written"
            else:
                why = "which the recorded job didn't read: that counts only if the job reads it now"
            self._obstacles.note(f"{name} is pinned to {self._pins[name]}, {why}")

    def _add_opaque(self, read: SnapshotRead) -> None:
        name = full_name_of(read.name)
        if name is not None and (name in self._pins or self._obstacles.allows(name)):
            self._used.add(name)
            return
        what = name or read.opaque or "something"
        self._obstacles.add_doubt(f"the job read {what}, of which Spark shows no table or version")


def full_name_of(name: NameParts) -> str | None:
    """Return a name of catalog, namespace and table; None if a part of it isn't known."""
    return ".".join(part for part in name if part) if all(name) else None


def _why_hidden(reads: Sequence[SnapshotRead]) -> str | None:
    return next((hidden_text(read.hidden, "what was read of it") for read in reads if read.hidden), None)


def _why_unpinnable(reads: Sequence[SnapshotRead]) -> str | None:
    if (hidden := _why_hidden(reads)) is not None:
        return f"{hidden}; choose a version by --pin TABLE@SNAPSHOT"
    for read in reads:
        if (place := _place_without_pins(read)) is not None:
            return f"no lens pins what is read from {place}; {_ALLOW}"
        if is_range(read) and read.format != TOPIC:
            return f"the job read changes of it, and not the table at a version; {_ALLOW}"
        if read.branch is not None:
            name = _name_of_branch(read)
            pin = f"; pin it by --pin {name}@{read.snapshot}" if name and read.snapshot is not None else ""
            return f"it was read on the branch {read.branch}, which may have moved{pin}; {_ALLOW}"
        if _version_of(read) is None:
            known = f": one of {read.candidates.strip('[]')}" if read.candidates else ""
            return f"which snapshot was read isn't known{known}; choose one by --pin TABLE@SNAPSHOT"
    return None


def _place_without_pins(read: SnapshotRead) -> str | None:
    if read.format == Format.HUDI.value and full_name_of(read.name) is None:
        return "the path of a table of Hudi"
    return None if read.format in PINNABLE or read.format == TOPIC else read.format or "a source of unknown format"


def _version_of(read: SnapshotRead) -> str | None:
    """Return what a lens pins it to; None if it isn't known."""
    if read.format != TOPIC:
        return None if read.snapshot is None else str(read.snapshot)
    if not is_range(read) or read.version is None:
        return read.version
    if read.since_version is None:
        return None
    starts, ends = json.loads(read.since_version), json.loads(read.version)
    return json.dumps(
        {partition: [starts.get(partition, 0), end] for partition, end in ends.items()}, separators=(",", ":")
    )


def _name_of_branch(read: SnapshotRead) -> str | None:
    """Return what SQL calls the branch that was read; None for main, and where the name isn't known."""
    name = full_name_of(read.name)
    if read.branch is None or name is None:
        return None
    if read.format == Format.ICEBERG.value:
        return f"{name}.branch_{read.branch}"
    namespace, _, table = name.rpartition(".")
    return f"{namespace}.`{table}$branch_{read.branch}`" if read.format == Format.PAIMON.value else None


def _names_of(reads: Sequence[SnapshotRead], datasets: Sequence[Dataset]) -> Iterator[str]:
    """Yield the names by which a script may read a table: those that it was read by, then others, and its paths."""
    for read in reads:
        if (name := full_name_of(read.name)) is not None:
            yield name
        if (branch := _name_of_branch(read)) is not None:
            yield branch
    for dataset in datasets:
        yield from (name for name in dataset.known_as if name.count(".") > 1)
        yield from _paths_of(dataset)


def _paths_of(dataset: Dataset) -> Iterator[str]:
    scheme, slashes, host = dataset.namespace.partition("://")
    if scheme == "file":
        yield f"/{dataset.name.strip('/')}"
    elif slashes and "/" not in host:
        schemes = ("s3", "s3a", "s3n") if scheme.startswith("s3") else (scheme,)
        yield from (f"{scheme}://{host}/{dataset.name.strip('/')}" for scheme in schemes)
