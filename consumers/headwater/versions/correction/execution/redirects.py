"""The lens of a correction: the chain's names lead to the mirrors, for what is read and what is written."""

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from headwater.errors import ConfigurationError
from headwater.lineage.store import Store
from headwater.versions.correction.execution.tables import Mirror
from headwater.versions.correction.journal import Correction, CorrectionJournal, CorrectionState
from headwater.versions.step_journal import StepKind, StepState
from headwater.versions.validation.results import full_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headwater.lens import Lens


def mirrors_of(correction: Correction) -> dict[str, Mirror]:
    """Return the mirrors that are there, by table."""
    steps = (step for step in correction.of(StepKind.MIRROR) if step.state is StepState.DONE)
    return {step.subject: Mirror.from_detail(step.detail) for step in steps}


def open_mirrors(correction: Correction) -> dict[str, Mirror]:
    """Return the mirrors of a correction that is being worked on. A ConfigurationError says why it isn't."""
    if correction.state is not CorrectionState.OPEN:
        what = {
            CorrectionState.BEGINNING: f"its mirrors aren't all there yet: `headwater correct run {correction.name}` "
            "goes on with them",
            CorrectionState.SWITCHING: "its mirrors are being put in place",
            CorrectionState.SWITCHED: "its mirrors are in place, so there is nothing more to correct on them",
            CorrectionState.ABORTING: "its mirrors are being removed",
            CorrectionState.ABORTED: "its mirrors were removed",
        }[correction.state]
        raise ConfigurationError(f"{correction.name} is {correction.state.value}: {what}")
    return mirrors_of(correction)


def lens_of(
    correction: str,
    mirrors: Mapping[str, Mirror],
    allowed: Collection[str] = (),
    checkpoints: Mapping[str, str] | None = None,
) -> Lens:
    """Return the lens of a correction. Tables outside of the chain are read as they are now, and not written. Streams
    have their forks of the `checkpoints`."""
    from headwater.lens import Lens  # noqa: PLC0415 - it is for drivers

    return Lens(
        name=f"correct {correction}",
        redirects={**{full_name(table): mirror.name for table, mirror in mirrors.items()}, **(checkpoints or {})},
        allowed=tuple(allowed),
        writes_elsewhere=False,
        reads_elsewhere=True,
    )


def marks_of(correction: str) -> dict[str, str]:
    """Return the properties that mark what runs on mirrors: questions about production leave it out."""
    return {"spark.headwater.validating": "true", "spark.headwater.tags.lens": f"correct {correction}"}


@contextmanager
def correction(spark: SparkSession, store: Store, name: str, *, allowed: Collection[str] = ()) -> Generator[Correction]:
    """Have all statements of a block read and write the mirrors of a correction by the names of their tables.

        with correction(spark, store, "c-20260301-orders-4f2a"):
            spark.sql("UPDATE lake.ods.orders SET price = 5 WHERE id = 3")

    Other tables are read as they are, and writing them is refused.
    """
    from headwater.lens import lens  # noqa: PLC0415 - it is for drivers

    found = CorrectionJournal(store, name).load()
    asked = lens_of(found.name, open_mirrors(found), allowed)
    with lens(
        spark,
        redirects=asked.redirects,
        allowed=asked.allowed,
        name=asked.name,
        writes_elsewhere=False,
        reads_elsewhere=True,
    ):
        yield found
