"""Tokens that are known by their shape: how those of services begin, and letters as nobody writes them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from headwater.events.redaction._names import any_of, word_set

BEGINNINGS: Final = sorted(
    word_set(r"""
    gh[pousr]_ github_pat_ gl[a-z]{2,5}- xox[a-z]- xapp- sk[-_](?:live|test|proj|ant|svcacct|admin|or)[-_]
    pk[-_](?:live|test)[-_] rk[-_](?:live|test)[-_] whsec_ dckr_ AT[AC]TT3 ATBB npm_ pypi- hv[sbr]\. SG\. hf_
    do[opr]_v1_ shp[acs][ats]_ PMAK- glsa_ glc_ lin_api_ ntn_ figd_ sbp_ pscale_ dp\.(?:pt|st|sa)\. NR(?:AK|II)-
    EAACEdEose sq0[a-z]{3}- AKCp tfp_ rubygems_ AIza ya29\. 1//0 GOCSPX- AQICAH eyJ
""")
)
AWS: Final = "A(?:KIA|SIA|BIA|CCA)"
DATABRICKS: Final = r"d(?:api|kea|ose)[0-9a-f]{32}"
_SHAPE: Final = any_of(
    *(rf"{beginning}(?=[\w-]{{8}})" for beginning in BEGINNINGS),
    rf"{AWS}(?=[A-Z0-9]{{12}})",
    DATABRICKS,
    r"""
    key-(?=[0-9a-f]{32})  sk-(?=[A-Za-z0-9]{16})  hooks\.slack\.com/  logic\.azure\.com  bot(?=\d{8,10}:)  FlyV1 (?=\S)
    -----BEGIN (?=\S)  ---- BEGIN (?=\S)  PuTTY-User-Key  Private-Lines
    """,
)
_RUN: Final = re.compile(r"[A-Za-z0-9+/_-]{20,}")
_CHUNK: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_SHORTEST_WORDS: Final = 3
_OF_KAFKA: Final = ("cluster ", "cluster, ", "cluster (", "cluster.id names ")
"""What stands before the id of a cluster, which is as random as a token and no secret."""
_OF_CLUSTER: Final = 22


def token_places(text: str) -> Iterator[int]:
    """Where tokens begin in a folded text."""
    for found in _SHAPE.finditer(text):
        if not text[found.start() - 1 : found.start()].isalnum():
            yield found.start()


def random_places(text: str) -> Iterator[int]:
    """Where runs of letters and digits begin that can't be words."""
    for found in _RUN.finditer(text):
        run, start = found.group(), found.start()
        is_of_kafka = len(run) == _OF_CLUSTER and text.endswith(_OF_KAFKA, max(0, start - _OF_CLUSTER), start)
        if looks_random(run) and not is_of_kafka:
            yield start


def looks_random(run: str) -> bool:
    """Whether capitals, small letters and digits change as nobody writes them: `aB3xK9`, not `Utf8ToDecimal`."""
    return (
        not (run.isupper() or run.islower())
        and any(map(str.isdigit, run))
        and len(run) < _SHORTEST_WORDS * len(_CHUNK.findall(run))
    )
