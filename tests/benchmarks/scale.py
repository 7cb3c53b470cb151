"""What a platform of 100,000 streaming jobs would ask of each part: python -m tests.benchmarks.scale [jobs]

Nothing is measured here. Figures that were measured elsewhere stand in `Measured`, assumptions in `Platform`; the rest
is arithmetic, and a simulation of which keys the events have: how partitions, memory and tables are loaded by them.
"""

from __future__ import annotations

import random
import statistics
import sys
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final, NamedTuple

from headwater.events import Committed, DatasetId, Format, Input, JobName, Output
from headwater.events.avro import Codec
from headwater.events.jobs import CommitKind, OverwriteScope, RangeStart, ReadMode
from headwater.events.keys import key_of
from headwater.testing.examples import FINGERPRINT, PRODUCER, RUN

SECONDS_A_YEAR: Final = 365.25 * 86_400
LARGEST_TABLE: Final = 32 << 40
"""Of PostgreSQL, with its pages of 8 KiB: a partition is a table of its own."""


@dataclass(frozen=True)
class Measured:
    """Figures of docs/figures.md and of the decisions: a machine with 2 cores that runs broker and database too."""

    writer: float = 10_500
    """Mixed events a second, one process, PostgreSQL with fsync on."""
    bytes_an_edge: float = 705
    """On PostgreSQL at 10^6 edges, with everything that belongs to an edge."""
    bytes_an_edge_sqlite: float = 518


@dataclass(frozen=True)
class Platform:
    """What is assumed."""

    jobs: int = 100_000
    commits_a_minute: float = 10
    """Of each job, on average."""
    edges_a_commit: float = 1.5
    heartbeat_seconds: float = 60
    lineage_seconds: float = 3_600
    jobs_a_driver: int = 1
    skew: float = 0.8
    """Zipf's exponent of how often jobs commit, and of how often tables are read."""
    fastest: float = 2
    """Commits a second of a job, at most: a micro-batch takes its time."""
    tables: int = 100_000
    edges: float = 1e12


MEASURED: Final = Measured()


class Load(NamedTuple):
    """Events a second."""

    commits: float
    heartbeats: float
    lineage: float

    @property
    def events(self) -> float:
        return sum(self)


def load_of(platform: Platform) -> Load:
    return Load(
        platform.jobs * platform.commits_a_minute / 60,
        platform.jobs / platform.jobs_a_driver / platform.heartbeat_seconds,
        platform.jobs / platform.lineage_seconds,
    )


def event_of(job: int, source: int) -> Committed:
    """A micro-batch from one table into another, named as such jobs are."""

    def table(number: int) -> DatasetId:
        return DatasetId(namespace="s3://acme-lake-prod", name=f"warehouse/area_{number % 97}/table_{number}")

    read = Input(
        dataset=table(source),
        generation=PRODUCER,
        format=Format.ICEBERG,
        mode=ReadMode.CHANGES,
        snapshot=7_712_340_988_123_410_055,
        since=RangeStart(snapshot=7_712_340_988_123_410_054),
    )
    made = Output(
        dataset=table(job),
        generation=PRODUCER,
        format=Format.ICEBERG,
        snapshot=5_179_299_526_185_056_830,
        parent=2_781_921_774_821_920_001,
        commit_kind=CommitKind.APPEND,
        replaced=OverwriteScope.NOTHING,
        made_from=(0,),
    )
    return Committed(
        producer=PRODUCER,
        sequence=19,
        family_sequence=19,
        job=JobName(name=f"ingest_area_{job % 97}_table_{job}"),
        run=RUN,
        barrier=1_858_460_870_375_463_936,
        incarnation=RUN,
        batch_id=41,
        fingerprint=FINGERPRINT,
        inputs=(read,),
        outputs=(made,),
    )


def weights(count: int, skew: float) -> list[float]:
    """How often each of them occurs, the most frequent first; the sum is 1."""
    raw = [1 / (place + 1) ** skew for place in range(count)]
    total = sum(raw)
    return [each / total for each in raw]


def limited(shares: Sequence[float], most: float) -> list[float]:
    """Take from each share what is more than the most, and give it to the others in proportion."""
    found = list(shares)
    while max(found) > most * 1.000_001:
        free = sum(each for each in found if each < most)
        over = sum(each - most for each in found if each > most)
        found = [most if each >= most else each * (1 + over / free) for each in found]
    return found


class KeyLoad(NamedTuple):
    """How the keys of jobs load partitions."""

    partitions: int
    busiest: float
    """The share of the busiest partition, as a multiple of the mean."""
    most_jobs: int
    hottest_job: float
    """The share of a most frequent job in its partition."""


def load_of_partitions(keys: Sequence[bytes], shares: Sequence[float], partitions: int) -> KeyLoad:
    """Spread jobs over partitions as publishers do: by CRC-32 of the key."""
    loads, jobs = [0.0] * partitions, [0] * partitions
    for key, share in zip(keys, shares, strict=True):
        place = zlib.crc32(key) % partitions
        loads[place] += share
        jobs[place] += 1
    hot = zlib.crc32(keys[0]) % partitions
    return KeyLoad(partitions, max(loads) * partitions, max(jobs), shares[0] / loads[hot])


def reads_of_tables(platform: Platform, commits: int, chance: random.Random) -> list[int]:
    """Draw which table each commit reads; return how often each was, the most first."""
    cumulated = list(accumulate(weights(platform.tables, platform.skew)))
    drawn = chance.choices(range(platform.tables), cum_weights=cumulated, k=commits)
    counts = [0] * platform.tables
    for each in drawn:
        counts[each] += 1
    return sorted(counts, reverse=True)


def main() -> int:
    platform = Platform(jobs=int(sys.argv[1]) if len(sys.argv) > 1 else Platform.jobs)
    load, measured = load_of(platform), MEASURED
    sizes = [
        len(Codec().encode(event_of(job, job // 2))) for job in range(0, platform.jobs, max(1, platform.jobs // 500))
    ]
    size = statistics.mean(sizes)
    edges = load.commits * platform.edges_a_commit
    month = edges * SECONDS_A_YEAR / 12 * measured.bytes_an_edge
    print(f"{platform.jobs:,} jobs, {load.commits * 60:,.0f} commits a minute, {platform.edges:.0e} edges\n")
    rows = (
        ("events a second: commits, heartbeats, job lineage", " + ".join(f"{each:,.0f}" for each in load)),
        ("bytes of a commit on the bus", f"{size:,.0f}"),
        ("MB a second on the bus, uncompressed", f"{load.events * size / 1e6:.1f}"),
        ("of what one process would write", f"{load.events / measured.writer:.0%}"),
        ("edges a second", f"{edges:,.0f}"),
        ("years until there are so many edges", f"{platform.edges / edges / SECONDS_A_YEAR:.1f}"),
        ("TB of them on PostgreSQL", f"{platform.edges * measured.bytes_an_edge / 1e12:,.0f}"),
        ("TB of them on SQLite", f"{platform.edges * measured.bytes_an_edge_sqlite / 1e12:,.0f}"),
        ("TB a month on PostgreSQL, of all tables", f"{month / 1e12:.1f}"),
        ("times the largest table of PostgreSQL", f"{month / LARGEST_TABLE:.1f}"),
        ("MB a second into tables and indexes", f"{edges * measured.bytes_an_edge / 1e6:.1f}"),
    )
    for name, value in rows:
        print(f"  {name:<54}{value:>24}")
    _print_keys(platform, load)
    return 0


def _print_keys(platform: Platform, load: Load) -> None:
    chance = random.Random(1)
    keys = [key_of(event_of(job, job // 2)) for job in range(platform.jobs)]
    chance.shuffle(keys)
    print("\n  partitions   busiest / mean   most jobs in one   the hottest job's share of its partition")
    for skew in (0.0, platform.skew):
        shares = limited(weights(platform.jobs, skew), platform.fastest / load.commits)
        for partitions in (12, 48, 192, 768):
            found = load_of_partitions(keys, shares, partitions)
            columns = f"{found.busiest:>17.2f}{found.most_jobs:>19,}{found.hottest_job:>25.1%}"
            print(f"  {partitions:>10}{columns}   skew {skew:g}")
    commits = 1_000_000
    counts = reads_of_tables(platform, commits, chance)
    a_day = load.commits * 86_400 / commits
    print(
        f"\n  of {commits:,} generated reads: the hottest table has {counts[0]:,} ({counts[0] * a_day:,.0f} a day), "
        f"the hottest hundred {sum(counts[:100]) / commits:.0%}, the median table {statistics.median(counts):g}"
    )


if __name__ == "__main__":
    sys.exit(main())
