"""`headwater table diff`: what differs between two versions of a table, or of two tables."""

from __future__ import annotations

from argparse import Namespace

from headwater.cli.commands import command
from headwater.cli.exits import Exit
from headwater.cli.flags import Flags, count, is_number
from headwater.cli.output import CommandOutput
from headwater.cli.run import add_properties, properties_of
from headwater.cli.validate import give_comparison
from headwater.config.spark_submit import java_on_standard_error

_SIDES = ("first", "second")


def _flags(parser: Flags) -> None:
    text = "catalog.namespace.table@SNAPSHOT, by a name that Spark has for it"
    parser.word("first", _version, text, "TABLE@SNAPSHOT")
    parser.word("second", _version, text, "TABLE@SNAPSHOT")
    parser.flags(
        "key", str, "a column by which rows are compared; without one they are compared as multisets", "COLUMN"
    )
    parser.flags("ignore", str, "a column that isn't compared, such as a time of loading", "COLUMN")
    parser.flag("samples", count, "10", "how many differing rows are shown of each kind", "N")
    add_properties(parser)


@command(
    """Compare two versions of a table, or versions of two tables, row by row in Spark. Nothing is written.

The exit code is 0 if the rows are equal and 1 if they differ.""",
    "headwater table diff lake.dws.daily@7 lake.dws.daily@8 --key day --key shop",
    "headwater table diff lake.dws.word_count@7 lake.scratch.word_count@1 --properties-file spark.conf",
    "headwater table diff lake.dws.daily@7 lake.dws.daily@8 --key day -o html > daily.html",
    flags=[_flags],
    outputs=("text", "json", "html"),
)
def diff(given: Namespace, output: CommandOutput) -> int:
    from headwater.versions.spark_tables import command_session  # noqa: PLC0415
    from headwater.versions.table_comparison import compare_versions  # noqa: PLC0415

    with java_on_standard_error(), command_session(properties_of(given), "headwater table diff") as spark:
        found = compare_versions(
            spark,
            given.first,
            given.second,
            key=given.key,
            ignored=given.ignore,
            samples=int(given.samples),
        )
    names = {side: f"{table}@{snapshot}" for side, (table, snapshot) in zip(_SIDES, _versions(given), strict=True)}
    if given.output == "html":
        from headwater.versions.validation.rendering import comparison_page  # noqa: PLC0415

        output.answer(comparison_page(found, names))
        return Exit.DONE if found.is_equal else Exit.FAILED
    output.record("versions", {**names, "verdict": "equal" if found.is_equal else "different"}, "Compared")
    give_comparison(found, output, _SIDES)
    return Exit.DONE if found.is_equal else Exit.FAILED


def _versions(given: Namespace) -> tuple[tuple[str, int], tuple[str, int]]:
    return given.first, given.second


def _version(text: str) -> tuple[str, int]:
    table, _, snapshot = text.rpartition("@")
    if not table or not is_number(snapshot):
        raise ValueError(f"{text!r} isn't TABLE@SNAPSHOT, such as lake.dws.daily@8")
    return table, int(snapshot)
