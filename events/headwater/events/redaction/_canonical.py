"""One text for all runs of a statement: without literals, and without the numbers that Spark counts up."""

from __future__ import annotations

import re
from typing import Final

from headwater.events.redaction._folding import without_repetition
from headwater.events.redaction._literals import NUMBER, QUOTED, masked, without_comments

_GAPS: Final = re.compile(rf"({QUOTED})|[^\S ]\s*| \s+", re.DOTALL)
_COUNTED: Final = re.compile(
    rf"(?P<kept>{QUOTED})"
    rf"|(?: ?(?:#\d+L?(?!\w)|(?:, ?)?\[ ?(?i:PLAN_ID|ID) ?= ?(?:\?|#\d+L?(?!\w)|{NUMBER}) ?\]))+"
    r"(?P<gap>(?=[-/*\w'\"`?]|\.\d))?"
    r"|(?P<lambda>(?<!\w)lambda \w+?)_\d+(?!\w)|(?P<at>@)(?:v\d+|[0-9a-f]{4,16})(?!\w)"
    r"|(?P<name>_gen_alias_|_common_expr_|_groupingexpression_|_joinkey_|_w|_we|_extract_|pythonUDF|snapshot_id_"
    r"|at_timestamp_)\d+(?!\w)",
    re.DOTALL,
)


def canonical_text(text: str) -> str:
    """The statement or expression as a fingerprint may see it: equal for equal shapes.

    Beyond `mask_literals`: expression ids (`name#12L`), plan ids (`[plan_id=12]`, `[id=#12]`), the counters in names
    that Spark makes up (`lambda x_1#3`, `_gen_alias_7`), versions in a table's name (`t@v12`, `t.snapshot_id_12`) and
    the addresses of objects (`Foo@1a2b3c4d`) go, and any white space is one space.
    """
    spaced = _GAPS.sub(lambda found: found[1] or " ", without_comments(text))
    return without_repetition(masked(_COUNTED.sub(_without_count, spaced))).strip()


def _without_count(found: re.Match[str]) -> str:
    kind = found.lastgroup
    if kind == "gap":
        return " "  # what was apart stays apart
    return "@v" if kind == "at" else found[kind] if kind else ""
