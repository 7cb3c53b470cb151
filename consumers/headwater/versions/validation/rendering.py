"""A validation as a page, for people who didn't run it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from headwater.lineage.rendering.html.page import Chapter, Markup, Page, Tile, callout, table
from headwater.versions.validation.model import (
    ComparedColumn,
    ComparedRows,
    ResultComparison,
    SampleRow,
    ValidationOutcome,
    ValidationPlan,
)


def verdict_of(comparison: ResultComparison) -> str:
    """Return in words what came out."""
    if comparison.is_equal:
        return "equal"
    parts = [
        (comparison.only_recorded, "only recorded"),
        (comparison.only_result, "only in the result"),
        (comparison.different or 0, "different"),
    ]
    words = [f"{number:,} {'row' if number == 1 else 'rows'} {text}" for number, text in parts if number]
    return "different: " + (", ".join(words) if words else "the columns differ")


def rows_text(rows: ComparedRows) -> str:
    """Return which rows were compared."""
    return "what the commit added" if rows is ComparedRows.ADDED else "all rows at the snapshot"


def column_note(column: ComparedColumn) -> str | None:
    """Return how the types of a column differ."""
    return f"{column.recorded_type} here, {column.result_type} in the result" if column.has_other_type else None


def as_page(plan: ValidationPlan, outcome: ValidationOutcome, command: Sequence[str]) -> str:
    """Return a page that needs nothing but itself."""
    found = outcome.comparison
    verdict = "not compared" if found is None else verdict_of(found)
    tiles = [Tile("Verdict", verdict.partition(":")[0], verdict, "rows", "good" if outcome.is_equal else "bad")]
    chapters = [Chapter("rows", "Rows", verdict, [])]
    if found is not None:
        chapters = list(_chapters(found))
        tiles.append(Tile("Recorded", f"{found.recorded_rows:,} rows", rows_text(plan.rows), "rows"))
        tiles.append(Tile("Result", f"{found.result_rows:,} rows", " ".join(command), "rows"))
    inputs = [(pinned.table, pinned.snapshot, ", ".join(pinned.names)) for pinned in plan.inputs if pinned.is_recorded]
    chapters.append(
        Chapter(
            "inputs",
            "What the job reads",
            "Each table was pinned to the snapshot that the recorded one was made from.",
            [table(("table", "snapshot", "as"), inputs), *(callout(note) for note in plan.notes)],
        )
    )
    words = f"{' '.join(command)} ran again on the same inputs, and what it made was compared with {plan.label}."
    return str(Page(f"{plan.label}: {verdict.partition(':')[0]}", words, chapters, tiles))


def _chapters(found: ResultComparison) -> Iterator[Chapter]:
    counts = [
        ("equal", found.equal),
        ("only recorded", found.only_recorded),
        ("only in the result", found.only_result),
        ("different", found.different),
    ]
    key = f"by {', '.join(found.key)}" if found.key else "as multisets, without a key"
    parts = [table(("", "rows"), counts)]
    if found.repeated_keys:
        parts.append(callout(f"{found.repeated_keys:,} keys have several rows: those were compared as multisets."))
    yield Chapter("rows", "Rows", f"Compared {key}.", parts)
    yield Chapter("columns", "Columns", _columns_text(found), [_columns(found)])
    if found.samples_different:
        rows = [
            (values_text(sample.key), column, here, there)
            for sample in found.samples_different
            for column, (here, there) in sample.columns.items()
        ]
        yield Chapter("different", "Different", "", [table(("key", "column", "recorded", "result"), rows)])
    for anchor, title, samples in (
        ("only-recorded", "Only recorded", found.samples_only_recorded),
        ("only-result", "Only in the result", found.samples_only_result),
    ):
        if samples:
            yield Chapter(anchor, title, "", [_samples(samples)])


def _columns(found: ResultComparison) -> Markup:
    rows = [(column.name, column.recorded_type, column.result_type, column.different) for column in found.columns]
    rows += [(key, "there", "missing", None) for key in found.missing_in_result]
    rows += [(key, "missing", "there", None) for key in found.missing_in_recorded]
    return table(("column", "recorded", "result", "different"), rows)


def _columns_text(found: ResultComparison) -> str:
    words = ["The columns stand in another order, which makes no difference."] if found.is_reordered else []
    if found.ignored:
        words.append(f"Ignored: {', '.join(found.ignored)}.")
    return " ".join(words)


def _samples(samples: Sequence[SampleRow]) -> Markup:
    names = list(samples[0].values)
    return table(("times", *names), [(sample.count, *sample.values.values()) for sample in samples])


def values_text(values: Mapping[str, str | None]) -> str:
    """Return a row, or a key, on one line."""
    return ", ".join(f"{name}={'NULL' if value is None else value}" for name, value in values.items())
