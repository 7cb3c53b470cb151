"""A text made to be slow isn't: four times the length takes about four times as long, and a megabyte some seconds.

Time is the process's own, so that a busy machine changes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from headwater.events.redaction import canonical_text, mask_catalyst, mask_literals, redact

HOSTILE = [
    "a", "password=", "password ", "password='\\", "password=,", "password=a,", "password=)))", "token=(", "token={[",
    "://", "a://b@", "a://u:p/", "jdbc:oracle:a:", "jdbc:oracle:thin:x@", "@", "eyJ", "eyJa.", "AKIA", "-----BEGIN ",
    "Bearer ", 'digest a="', "curl -u ", "'", '"', "\\'", "`", "''", "'''x ", "--", "/*", "/**/", "*/", "1", "1.", "1e",
    "?,", "IN (1,", "[1,", "VALUES (1),", "(", ")", "INTERVAL 1 DAY ", "- ", "map<", "as struct<", "decimal(", "a#1",
    "key-", "a----", "a:b@", "<password>", "<password ", "(password,", "|password|", "Map(password -> a b, ", "\\n",
    "{password=a ", "SET a.password=", "password: |\n  a\n", "  ", "\U0001f642", "\u0130", "''''password",
]  # fmt: skip
ENDS = ["", "x", "@'", "= password=x "]


def seconds(function: Callable[[str], object], text: str) -> float:
    before = time.process_time()
    function(text)
    return time.process_time() - before


@pytest.mark.parametrize("function", [redact, mask_literals, mask_catalyst, canonical_text])
def test_time_grows_with_the_length_alone(function: Callable[[str], object]) -> None:
    for unit in HOSTILE:
        for end in ENDS:
            texts = [unit * (length // len(unit)) + end for length in (1_500, 6_000)]
            short, long = (min(seconds(function, text) for _ in range(2)) for text in texts)
            assert long < max(10 * short, 0.06), f"{unit!r} and {end!r}: {short:.4f} s, then {long:.4f} s"


@pytest.mark.slow
@pytest.mark.parametrize("unit", HOSTILE)
def test_a_megabyte_takes_seconds(unit: str) -> None:
    text = unit * (1_000_000 // len(unit))
    assert max(seconds(function, text) for function in (redact, mask_literals, mask_catalyst)) < 20
