"""Credentials within identities: the user-info of URLs, and tokens that are known by their whole shape.

An identity tells one thing from another, so it loses nothing that only might be a secret: `load token accounts_2023`
and `/data/token=eu` are names. The shapes here are narrower than those for other texts, since tables are called
`ASIAPACIFICORDERS` and `SG.customer_orders` too.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Final

from headwater.events.redaction._shapes import pem_blocks
from headwater.events.redaction._spans import Span
from headwater.events.redaction._urls import oracle_user_infos, url_user_infos

_HINT = re.compile(
    r"://|jdbc:oracle:|-----begin |a(?:kia|sia|bia|cca|iza)|ya29\.|1//0|gocspx-|g(?:h[pousr]_|ithub_pat_|l[a-z]+-)"
    r"|xox|xapp-|hooks\.slack|d(?:api|kea|ose)|eyj|[srv]k[-_]|npm_|pypi-|hv[sbr]\.|sg\.|hf_|[?&](?:sig|x-)"
)
_DIGIT_AND_LETTERS: Final = r"(?=[\w-]{0,60}?\d)(?=[\w-]{0,60}?[A-Z])(?=[\w-]{0,60}?[a-z])"
_TOKENS = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"A(?:KIA|SIA|BIA|CCA)(?=[A-Z]{0,15}[2-7])[A-Z2-7]{16}(?![A-Za-z0-9])(?:[^\w\s]{1,4}[A-Za-z0-9/+=]{30,128})?"  # AWS
    r"|ya29\.[\w-][\w.-]{15,}|1//0[\w-]{30,}|GOCSPX-[\w-]{20,}|AIza[\w-]{35}"  # Google
    r"|gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9]{20,}_\w{20,}"
    rf"|gl(?:pat|dt|ptt|rt)-{_DIGIT_AND_LETTERS}[\w-]{{20,}}"
    r"|xox[a-z]-\d[\w-]{10,}|xapp-\d-[\w-]{10,}|hooks\.slack\.com/(?:services|workflows)/[\w/]+"
    r"|d(?:api|kea|ose)[0-9a-f]{32}(?:-\d)?"  # Databricks
    r"|eyJ[\w-]{10,}(?:\.[\w-]*){2,4}"  # JSON web tokens
    r"|sk-(?:proj|svcacct|admin|ant-\w{1,8})-[\w-]{20,}|sk-[A-Za-z0-9]{32,}|[sr]k_(?:live|test)_[A-Za-z0-9]{24,}"
    rf"|npm_[A-Za-z0-9]{{36}}|pypi-AgE[\w-]{{32,}}|hv[sbr]\.{_DIGIT_AND_LETTERS}[\w-]{{24,}}"
    r"|SG\.[\w-]{22}\.[\w-]{43}|hf_[A-Za-z0-9]{30,}"
    r")"
)
_SIGNATURE = re.compile(r"(?i)[?&](?:sig|x-(?:amz|goog)-(?:signature|security-token|credential))=([\w%+/=.-]{30,})")


def credentials_in_identity(text: str) -> Iterator[Span]:
    """The places of the credentials in a name, a path, a URL or an id."""
    if not _HINT.search(text.lower()):
        return
    yield from pem_blocks(text)
    yield from url_user_infos(text)
    yield from oracle_user_infos(text)
    yield from (Span(*found.span()) for found in _TOKENS.finditer(text) if _is_token(found.group()))
    yield from (Span(*found.span(1)) for found in _SIGNATURE.finditer(text))


def _is_token(text: str) -> bool:
    """A web token has a header that names its algorithm; `eyJ_orders.eu.2023` hasn't."""
    return not text.startswith("eyJ") or b'"alg"' in _decoded(text.partition(".")[0])


def _decoded(encoded: str) -> bytes:
    try:
        return base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4))
    except (binascii.Error, ValueError):
        return b""
