"""Sets the fences of a switch, keeps them, and waits until the aligned jobs stand at them."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Final

from headwater.errors import HeadwaterError
from headwater.lineage.store import Store
from headwater.versions.aligned.fences import LEASE_SECONDS
from headwater.versions.correction.journal import Correction, CorrectionJournal, CorrectionState
from headwater.versions.correction.moved_jobs import SwitchRefusedError, groups_of_correction, jobs_at_work
from headwater.versions.step_journal import JournalStep, StepKind, StepState, TakenOverError

_LOG: Final = logging.getLogger(__name__)
_POLL_SECONDS: Final = 0.5


@contextmanager
def standing_jobs(
    store: Store,
    name: str,
    epoch: int,
    *,
    patience_seconds: float = 300.0,
    report: Callable[[str], None] = lambda _: None,
) -> Generator[None]:
    """Have the aligned jobs of a correction stand between two barriers inside the block. A SwitchRefusedError names
    those that don't get there in time.

    If the correction is still open at the end, or was switched, the fences are lifted. While tables are being switched
    they stay.
    """
    journal = CorrectionJournal(store, name)
    found = journal.load()
    groups = groups_of_correction(found)
    fences = _Fences(journal, epoch, groups, found)
    try:
        fences.set()
        _wait(store, groups, patience_seconds, report)
        yield
    finally:
        fences.end()


class _Fences:
    """The fences of one switch, renewed from a thread."""

    def __init__(
        self, journal: CorrectionJournal, epoch: int, groups: Mapping[str, set[str]], found: Correction
    ) -> None:
        self._journal: Final = journal
        self._epoch: Final = epoch
        self._groups: Final = groups
        standing = [step for step in found.of(StepKind.FENCE) if step.state is StepState.RUNNING]
        self._steps: dict[str, JournalStep] = {step.subject: step for step in standing}
        self._ended: Final = threading.Event()
        self._thread: Final = threading.Thread(target=self._renew, name="headwater-fences", daemon=True)

    def set(self) -> None:
        for group in sorted(self._groups):
            if group not in self._steps:
                [self._steps[group]] = self._journal.add(self._epoch, [(StepKind.FENCE, group, {})])
        self._move(StepState.RUNNING)
        self._thread.start()

    def end(self) -> None:
        """Renew them no more, and lift them unless tables are being switched."""
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join()
        try:
            if self._journal.load().state is not CorrectionState.SWITCHING:
                self._move(StepState.DONE)
        except TakenOverError:
            pass  # they are the other process's now
        except HeadwaterError as e:
            _LOG.warning("the fences of %s couldn't be lifted, and end by themselves: %s", self._journal.name, e)

    def _renew(self) -> None:
        while not self._ended.wait(LEASE_SECONDS / 6) and self._is_renewed():
            pass

    def _is_renewed(self) -> bool:
        """Renew them; return False if they are another process's now. A store that is away is tried again."""
        try:
            self._move(StepState.RUNNING)
        except TakenOverError:
            return False
        except HeadwaterError as e:
            _LOG.warning("the fences of %s couldn't be renewed: %s", self._journal.name, e)
        return True

    def _move(self, state: StepState) -> None:
        for group, step in self._steps.items():
            self._steps[group] = self._journal.move_step(self._epoch, step, state)


def _wait(store: Store, groups: Mapping[str, set[str]], seconds: float, report: Callable[[str], None]) -> None:
    until, told = time.monotonic() + seconds, ""
    while working := jobs_at_work(store, groups):
        names = ", ".join(f"{job.job} of {group} (data version {job.running})" for group, job in working)
        if names != told:
            told = names
            report(f"waits until jobs stand between two barriers: {names}")
        if time.monotonic() >= until:
            raise SwitchRefusedError(
                f"{names} didn't come to the end of a barrier within {seconds:.0f} s, so nothing was switched. If a "
                "job was killed within one, start it: it ends that barrier, and stops there"
            )
        time.sleep(_POLL_SECONDS)
