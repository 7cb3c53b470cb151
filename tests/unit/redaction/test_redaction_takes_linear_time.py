"""A text made to be slow isn't: no pattern tries the same characters again and again.

Time is the process's own, so that a busy machine changes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from headwater.events.redaction import canonical_text, mask_catalyst, redact

HOSTILE = [
    "a", "password=", "password ", "password='\\", "password=,", "password=a,", "password=)))", "token=(", "token={[",
    "://", "a://b@", "a://u:p/", "jdbc:oracle:a:", "jdbc:oracle:thin:x@", "@", "eyJ", "eyJa.", "AKIA", "-----BEGIN ",
    "Bearer ", 'digest a="', "curl -u ", "'", '"', "\\'", "`", "''", "'''x ", "--", "/*", "/**/", "*/", "1", "1.", "1e",
    "?,", "IN (1,", "[1,", "VALUES (1),", "(", ")", "INTERVAL 1 DAY ", "- ", "map<", "as struct<", "decimal(", "a#1",
    "key-", "a----", "a:b@", "<password>", "<password ", "(password,", "|password|", "Map(password -> a b, ", "\\n",
    "{password=a ", "SET a.password=", "password: |\n  a\n", "  ", "\U0001f642", "\u0130", "''''password",
]  # fmt: skip
END = "@' = password=x "  # so that no text is passed over as one that can't hold a secret
QUICK: dict[Callable[[str], object], int] = {redact: 20_000, canonical_text: 6_000, mask_catalyst: 6_000}
A_MEGABYTE = 1_000_000


def seconds(function: Callable[[str], object], unit: str, length: int) -> float:
    text = unit * (length // len(unit)) + END
    before = time.process_time()
    function(text)
    return time.process_time() - before


@pytest.mark.parametrize("function", QUICK)
@pytest.mark.slow
def test_no_text_is_slow(function: Callable[[str], object]) -> None:
    """At these lengths linear time is under a tenth of the limit, and anything worse is over it."""
    slow = {unit: spent for unit in HOSTILE if (spent := seconds(function, unit, QUICK[function])) > 1}
    assert slow == {}


@pytest.mark.slow
@pytest.mark.parametrize("unit", HOSTILE[::4])
def test_a_megabyte_with_secrets_takes_seconds(unit: str) -> None:
    assert seconds(redact, unit, A_MEGABYTE) < 15


@pytest.mark.long
@pytest.mark.parametrize("unit", ["'", "(", "IN (1,"])
@pytest.mark.parametrize("function", [canonical_text, mask_catalyst])
def test_a_megabyte_of_sql_takes_seconds(function: Callable[[str], object], unit: str) -> None:
    assert seconds(function, unit, A_MEGABYTE) < 30
