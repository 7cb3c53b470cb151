"""`AsyncLineage`: the same questions, each on a thread of its own, so that an event loop goes on meanwhile."""

from __future__ import annotations

import asyncio
from types import TracebackType

from typing_extensions import Self

from headwater.lineage.asked import AsksAsync, StreamsAsync
from headwater.lineage.questions import columns, completeness, jobs, names, paths, snapshots, states, tables
from headwater.lineage.questions import history as modifications
from headwater.lineage.questions import lives as naming
from headwater.lineage.questions.late import late
from headwater.lineage.questions.runs import runs
from headwater.lineage.questions.uses import uses
from headwater.lineage.store import Store, StoreOptions, open_store


class AsyncLineage:
    """What streams is an async iterator; close it (`contextlib.aclosing`) where it isn't read to its end."""

    def __init__(self, store: Store) -> None:
        self.store = store

    @classmethod
    async def open(cls, url: str | StoreOptions) -> Self:
        return cls(await asyncio.to_thread(open_store, url, readonly=True))

    async def close(self) -> None:
        await asyncio.to_thread(self.store.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        await self.close()

    # The methods of `Lineage`, in its order.

    find = AsksAsync(names.find)
    upstream_tables = AsksAsync(tables.upstream_tables)
    downstream_tables = AsksAsync(tables.downstream_tables)
    upstream_snapshots = AsksAsync(snapshots.upstream_snapshots)
    downstream_snapshots = AsksAsync(snapshots.downstream_snapshots)
    stream_upstream_snapshots = StreamsAsync(snapshots.stream_upstream_snapshots)
    stream_downstream_snapshots = StreamsAsync(snapshots.stream_downstream_snapshots)
    upstream_state = AsksAsync(states.upstream_state)
    upstream_columns = AsksAsync(columns.upstream_columns)
    downstream_columns = AsksAsync(columns.downstream_columns)
    path_between = AsksAsync(paths.path_between)
    complete_until = AsksAsync(completeness.complete_until)
    gaps = AsksAsync(completeness.gaps)
    jobs_of = AsksAsync(jobs.jobs_of)
    tables_of = AsksAsync(jobs.tables_of)
    runs = AsksAsync(runs)
    history = AsksAsync(modifications.history)
    schema_changes = AsksAsync(modifications.schema_changes)
    aliases = AsksAsync(naming.aliases)
    lives = AsksAsync(naming.lives)
    late = AsksAsync(late)
    uses = AsksAsync(uses)
