"""A switch of a correction with aligned jobs: they stop, the mirrors get what is left, and the jobs go on behind it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headwater.lineage.store import Store
from headwater.versions.correction.execution.corrector import Corrector, TablesOpener
from headwater.versions.correction.execution.reruns import CommandRunner
from headwater.versions.correction.fencing import standing_jobs
from headwater.versions.correction.journal import Correction, CorrectionJournal
from headwater.versions.correction.model import CorrectionPlan
from headwater.versions.correction.switching import Switcher, SwitchTablesOpener, TableSwitch


@dataclass(frozen=True, kw_only=True)
class FencedSwitch:
    """What such a switch needs."""

    open_tables: TablesOpener
    open_switch_tables: SwitchTablesOpener
    run_command: CommandRunner
    make_plan: Callable[[Correction], CorrectionPlan]
    patience_seconds: float = 300.0
    """How long it waits for jobs to come to the end of a barrier."""
    report: Callable[[str], None] = lambda _: None
    start_stream: Callable[[str, str], None] = lambda job, checkpoint: None  # noqa: ARG005 - names say what

    def switch(self, store: Store, name: str) -> tuple[TableSwitch, ...]:
        """Stop the aligned jobs between two barriers, run the mirrors' jobs on what is left, and switch. Jobs go on
        when it is through, or as they were if it is refused before the first table."""
        epoch = CorrectionJournal(store, name).take_over()
        with standing_jobs(store, name, epoch, patience_seconds=self.patience_seconds, report=self.report):
            corrector = Corrector(store, name, self.open_tables, self.report, epoch=epoch)
            corrector.run(self.run_command, self.make_plan, is_final=True)
            return Switcher(
                store, name, self.open_switch_tables, self.report, epoch=epoch, start_stream=self.start_stream
            ).switch()
