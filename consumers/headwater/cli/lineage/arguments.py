"""The flags of `headwater lineage`."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from typing import Final

from headwater.cli.events.arguments import moment_of
from headwater.cli.flags import Flags, one_of
from headwater.cli.store import add_store

ACTIONS: Final = {
    "upstream": "what it was made from",
    "downstream": "what was made from it: what breaks if it changes",
    "path": "how one comes into the other",
}
FORMATS: Final = ("text", "json", "dot", "mermaid", "html")
_WHICH: Final = "TABLE[@SNAPSHOT][.COLUMN], a path or URI; a snapshot is a number or a tag"
_MOST: Final = "10000"


def parse(action: str, arguments: Sequence[str], usual: str) -> Namespace:
    summary = ACTIONS[action]
    parser = Flags(f"headwater lineage {action}", f"{summary[0].upper()}{summary[1:]}.")
    add_store(parser)
    if action == "path":
        parser.add_argument("source", metavar="FROM", help="where the way begins: TABLE[@SNAPSHOT]")
        parser.add_argument("table", metavar="TO", help="where it ends: TABLE[@SNAPSHOT]")
    else:
        parser.add_argument("table", metavar="TABLE", help=_WHICH)
        parser.switch("direct", "one step only, as --depth 1")
        parser.flag("depth", count, None, "so many steps at most", "N")
        parser.flag("column", str, None, "a column, where its name would be mistaken for the table's", "COLUMN")
        parser.flag("branch", str, None, "the branch that the snapshot is on, by its own name", "BRANCH")
        parser.flag("job", str, None, "of tables: only what this job and its steps made", "JOB")
        parser.flag("limit", count, _MOST, "so many edges at most", "N")
    basis = parser.add_mutually_exclusive_group()
    commit = "of snapshots: what the commit of the snapshot read; a table alone is its newest snapshot"
    basis.add_argument("--commit", dest="basis", action="store_const", const="commit", help=commit)
    state = "of snapshots: what all commits read that are in the table, since the last full overwrite"
    basis.add_argument("--state", dest="basis", action="store_const", const="state", help=state)
    parser.flag("as-of", moment_of, None, "as it was at a time: 2026-03-01, 2026-03-01T12:30 or 7d", "TIME")
    forms = f"{{{','.join(FORMATS)}}}"
    parser.flag("format", one_of(FORMATS), usual, "how it looks; --output's if not given", forms)
    return parser.parse_args(arguments)


def count(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise ValueError(f"{text!r} is no number: write 1 or more")
    return int(text)
