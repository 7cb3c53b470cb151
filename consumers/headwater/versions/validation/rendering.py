"""A validation, or a comparison of two versions, as a page, for people who didn't run it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from headwater.lineage.rendering.html.page import Chapter, Markup, Page, Tile, callout, table
from headwater.versions.validation.model import (
    ComparedColumn,
    ComparedRows,
    ResultComparison,
    SampleRow,
    ValidationOutcome,
    ValidationPlan,
)

Sides: TypeAlias = tuple[str, str]
"""What the two sides of a comparison are called."""
_SIDES: Final = ("recorded", "result")


def verdict_of(comparison: ResultComparison, sides: Sides = _SIDES) -> str:
    """Return in words what came out."""
    if comparison.is_equal:
        return "equal"
    parts = [
        (comparison.only_recorded, f"only {sides[0]}"),
        (comparison.only_result, f"only in the {sides[1]}"),
        (comparison.different or 0, "different"),
    ]
    words = [f"{number:,} {'row' if number == 1 else 'rows'} {text}" for number, text in parts if number]
    return "different: " + (", ".join(words) if words else "the columns differ")


def rows_text(rows: ComparedRows) -> str:
    """Return which rows were compared."""
    return "what the commit added" if rows is ComparedRows.ADDED else "all rows at the snapshot"


def column_note(column: ComparedColumn, other: str = _SIDES[1]) -> str | None:
    """Return how the types of a column differ."""
    return f"{column.recorded_type} here, {column.result_type} in the {other}" if column.has_other_type else None


def comparison_page(found: ResultComparison, versions: Mapping[str, str]) -> str:
    """Return a page about two versions of tables, each by what its side is called: `{"first": "lake.dws.daily@7"}`."""
    (one, first), (other, second) = versions.items()
    verdict = verdict_of(found, (one, other))
    tiles = [
        Tile("Verdict", verdict.partition(":")[0], verdict, "rows", "good" if found.is_equal else "bad"),
        Tile(one.capitalize(), f"{found.recorded_rows:,} rows", first, "rows"),
        Tile(other.capitalize(), f"{found.result_rows:,} rows", second, "rows"),
    ]
    words = f"All rows of {first} and {second} were compared."
    title = f"{first} and {second}: {verdict.partition(':')[0]}"
    return str(Page(title, words, list(_chapters(found, (one, other))), tiles))


def comparisons_page(title: str, found: Mapping[str, ResultComparison], sides: Sides) -> str:
    """Return a page about several tables, each compared with another state of it."""
    rows = [
        (name, each.recorded_rows, each.result_rows, each.equal, verdict_of(each, sides))
        for name, each in found.items()
    ]
    changed = [name for name, each in found.items() if not each.is_equal]
    verdict = f"{len(changed)} of {len(found)} tables differ" if changed else "all tables are equal"
    chapters = [Chapter("tables", "Tables", verdict, [table(("table", *sides, "equal", "verdict"), rows)])]
    for number, name in enumerate(changed, 1):
        parts = [part for chapter in _chapters(found[name], sides) for part in chapter.parts]
        chapters.append(Chapter(f"table-{number}", name, verdict_of(found[name], sides), parts))
    return str(Page(title, verdict, chapters, [Tile("Verdict", str(len(changed)), verdict, "tables")]))


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


def _chapters(found: ResultComparison, sides: Sides = _SIDES) -> Iterator[Chapter]:
    one, other = sides
    counts = [
        ("equal", found.equal),
        (f"only {one}", found.only_recorded),
        (f"only in the {other}", found.only_result),
        ("different", found.different),
    ]
    key = f"by {', '.join(found.key)}" if found.key else "as multisets, without a key"
    parts = [table(("", "rows"), counts)]
    if found.repeated_keys:
        parts.append(callout(f"{found.repeated_keys:,} keys have several rows: those were compared as multisets."))
    yield Chapter("rows", "Rows", f"Compared {key}.", parts)
    yield Chapter("columns", "Columns", _columns_text(found), [_columns(found, sides)])
    if found.samples_different:
        rows = [
            (values_text(sample.key), column, here, there)
            for sample in found.samples_different
            for column, (here, there) in sample.columns.items()
        ]
        yield Chapter("different", "Different", "", [table(("key", "column", one, other), rows)])
    for anchor, title, samples in (
        (f"only-{one}", f"Only {one}", found.samples_only_recorded),
        (f"only-{other}", f"Only in the {other}", found.samples_only_result),
    ):
        if samples:
            yield Chapter(anchor, title, "", [_samples(samples)])


def _columns(found: ResultComparison, sides: Sides) -> Markup:
    rows = [(column.name, column.recorded_type, column.result_type, column.different) for column in found.columns]
    rows += [(key, "there", "missing", None) for key in found.missing_in_result]
    rows += [(key, "missing", "there", None) for key in found.missing_in_recorded]
    return table(("column", *sides, "different"), rows)


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
