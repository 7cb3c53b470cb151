"""What is learned from events takes no more memory than it may, whatever comes."""

from __future__ import annotations

import gc
import tracemalloc
from uuid import UUID

import pytest

from headwater.events import Committed, DatasetId, Format, Input, JobName, Output, TableName
from headwater.events.avro import Codec
from headwater.lineage.mapping import BatchMapper, batch_mapper, row_builder
from tests.kit.lineage.scripted_producer import at

pytestmark = [pytest.mark.slow, pytest.mark.long]

CODEC = Codec()
MEGABYTE = 1 << 20


def commit(number: int, job: int, run: int, sources: int) -> bytes:
    named = [
        (f"t-{job}-{each}", TableName(catalog="c", database="d", table=f"t-{job}-{each}")) for each in range(sources)
    ]
    places = [(DatasetId(namespace="s3://lake", name=name), table) for name, table in named]
    return CODEC.encode(
        Committed(
            producer=UUID(int=5),
            sequence=number,
            family_sequence=number,
            time=at(number / 1000),
            job=JobName(name=f"job-{job}"),
            run=UUID(int=run),
            barrier=number,
            inputs=tuple(Input(dataset=dataset, table=table, snapshot=number) for dataset, table in places),
            outputs=(Output(dataset=places[0][0], snapshot=number, format=Format.PAIMON, made_from=(0,)),),
        )
    )


@pytest.mark.parametrize(("jobs", "runs", "sources"), [(350, 1, 10), (14, 60, 40)])
@pytest.mark.parametrize("packs", [False, True])
def test_it_is_bounded_in_bytes(
    monkeypatch: pytest.MonkeyPatch, jobs: int, runs: int, sources: int, packs: bool
) -> None:
    """Many jobs, whose templates were bounded by the size of their events only, a ninetieth of their own; and many
    runs of few jobs, whose rows weren't bounded at all."""
    monkeypatch.setattr(batch_mapper, "MOST_MEMORY", 3 * MEGABYTE)
    events = [commit(job * runs + run + 1, job, run, sources) for run in range(runs) for job in range(jobs)]
    mapper = BatchMapper(packs=packs)
    mapper.add(events[0])  # what is built once for all
    mapper.drain()
    gc.collect()
    tracemalloc.start()
    for start in range(0, len(events), 20):
        some = events[start : start + 20]
        for each in some:
            mapper.add(each)
        mapper.drain()
    row_builder._known_id.cache_clear()  # bounded by itself
    gc.collect()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 6 * MEGABYTE
