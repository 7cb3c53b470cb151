"""One text for all runs of a statement: without literals, and without the numbers that Spark counts up."""

from __future__ import annotations

import re
from collections.abc import Iterator

from headwater.events.redaction._literals import masked_tokens
from headwater.events.redaction._scanner import END, SqlScanner, SqlToken, TokenKind, joined

_COUNTED_NAME = re.compile(
    r"(_gen_alias_|_common_expr_|_groupingexpression_|_joinkey_|_w|_we|_extract_|pythonUDF|snapshot_id_|at_timestamp_)\d+\Z"
)
_LAMBDA_COUNT = re.compile(r"_\d+\Z")
_VERSION = re.compile(r"v\d+\Z|[0-9a-f]{4,16}\Z")
_MAKES_COMMENT = frozenset("-/*")
_IDS = frozenset(["ID", "PLAN_ID"])


def canonical_text(text: str) -> str:
    """The statement or expression as a fingerprint may see it: equal for equal shapes.

    Beyond `mask_literals`: expression ids (`name#12L`), plan ids (`[plan_id=12]`, `[id=#12]`), the counters in names
    that Spark makes up (`lambda x_1#3`, `_gen_alias_7`), versions in a table's name (`t@v12`, `t.snapshot_id_12`) and
    the addresses of objects (`Foo@1a2b3c4d`) go, and any white space is one space.
    """
    tokens = list(_without_counters(list(SqlScanner(text).tokens())))
    return joined(masked_tokens(tokens)).strip()


def _without_counters(tokens: list[SqlToken]) -> Iterator[SqlToken]:
    at = 0
    needs_gap = False
    while at < len(tokens):
        skipped = _counted_length(tokens, at)
        if skipped:
            at += skipped
            needs_gap = True
            continue
        before = tokens[at - 1] if at else END
        token = _without_count(tokens[at], before)
        is_glued = needs_gap and (token.kind is not TokenKind.SIGN or token.text in _MAKES_COMMENT)
        gap = " " if token.gap or is_glued else ""
        yield token if token.gap == gap else token._replace(gap=gap)
        at += 1
        needs_gap = False


def _counted_length(tokens: list[SqlToken], at: int) -> int:
    """How many tokens from here on are nothing but a counter: `#12`, `[plan_id=12]`, `, [id=#12]`."""
    if tokens[at].kind is TokenKind.EXPR_ID:
        return 1
    start = at + (tokens[at].text == ",")
    group = tokens[start : start + 5]
    is_id = len(group) == 5 and group[0].text == "[" and group[1].word in _IDS and group[2].text == "="
    if is_id and group[3].kind in {TokenKind.MARK, TokenKind.NUMBER, TokenKind.EXPR_ID} and group[4].text == "]":
        return start + 5 - at
    return 0


def _without_count(token: SqlToken, before: SqlToken) -> SqlToken:
    if token.kind is not TokenKind.WORD:
        return token
    if before.text == "lambda":
        return token._replace(text=_LAMBDA_COUNT.sub("", token.text) or token.text)
    if before.text == "@" and not token.gap and _VERSION.match(token.text):
        return token._replace(text="v")
    counted = _COUNTED_NAME.search(token.text) if token.text[-1].isdigit() else None
    return token._replace(text=token.text[: counted.end(1)]) if counted else token
