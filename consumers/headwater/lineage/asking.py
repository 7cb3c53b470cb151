"""`Lineage`: a store that is asked."""

from __future__ import annotations

from types import TracebackType

from typing_extensions import Self

from headwater.lineage.asked import Asks, Streams
from headwater.lineage.questions import columns, completeness, jobs, names, paths, snapshots, states, tables
from headwater.lineage.questions import history as modifications
from headwater.lineage.questions import lives as naming
from headwater.lineage.questions.late import late
from headwater.lineage.questions.runs import runs
from headwater.lineage.questions.uses import uses
from headwater.lineage.store import Store, StoreOptions, open_store


class Lineage:
    """For any thread. Each question has a connection of its own, and answers out of what is there at that moment."""

    def __init__(self, store: Store) -> None:
        self.store = store

    @classmethod
    def open(cls, url: str | StoreOptions) -> Self:
        """Only to ask: nothing is written, and nothing is made."""
        return cls(open_store(url, readonly=True))

    def close(self) -> None:
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self.close()

    # Each a question of `headwater.lineage.questions`, without its connection.

    find = Asks(names.find)
    upstream_tables = Asks(tables.upstream_tables)
    downstream_tables = Asks(tables.downstream_tables)
    upstream_snapshots = Asks(snapshots.upstream_snapshots)
    downstream_snapshots = Asks(snapshots.downstream_snapshots)
    stream_upstream_snapshots = Streams(snapshots.stream_upstream_snapshots)
    stream_downstream_snapshots = Streams(snapshots.stream_downstream_snapshots)
    upstream_state = Asks(states.upstream_state)
    upstream_columns = Asks(columns.upstream_columns)
    downstream_columns = Asks(columns.downstream_columns)
    path_between = Asks(paths.path_between)
    complete_until = Asks(completeness.complete_until)
    gaps = Asks(completeness.gaps)
    jobs_of = Asks(jobs.jobs_of)
    tables_of = Asks(jobs.tables_of)
    runs = Asks(runs)
    history = Asks(modifications.history)
    schema_changes = Asks(modifications.schema_changes)
    aliases = Asks(naming.aliases)
    lives = Asks(naming.lives)
    late = Asks(late)
    uses = Asks(uses)
