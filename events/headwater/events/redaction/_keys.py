"""Which names of options, properties, parameters and columns hold secrets.

A name is judged by its words (`fs.s3a.secret.key`, `clientSecret`, `AWS_SECRET_ACCESS_KEY`), never by its case or its
separators. Two questions are asked of it:

* `names_secret`: may this word, found in a free text before a `=` or a `:`, be followed by a secret? Texts also speak
  of columns (`a.customer_key = b.customer_key`), so a bare "key" isn't enough there.
* `is_secret_option`: is the value of this option a secret? Here an unknown "… key" is one: losing an option's value is
  better than giving away a secret. What lineage needs is named below: `primary-key`, `bucket-key`, `key.fields` and
  their like stay readable, and so do names whose last word says that the value is a place, a class, a size or a time.
"""

from __future__ import annotations

import re
from typing import Final

MAX_NAME: Final = 256
"""Only the end of a longer name is looked at: no option is called so, and time stays bounded."""


def word_set(words: str) -> frozenset[str]:
    """The words of a text that stands in the source as a list."""
    return frozenset(words.split())


_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")

_KEY_OF = (
    "access|account|admin|aes|api|app|application|auth|cipher|client|cmk|consumer|crypto|decryption|deploy|encrypt|"
    "encryption|hmac|keystore|kms|license|licence|master|priv|private|pvt|root|rsa|sas|secret|security|service|session|shared|"
    "sign|signing|sse|ssh|storage|subscription|symmetric|webhook"
)
_SECRET = re.compile(
    rf"pass_?word|passwd|passwort|pass_?phrase|pass_?code|pwd|secret(?!ar)|token(?!i[zs])|credential|jaas"
    rf"|authorization|bearer|cookie|signature|connection_?string|conn_?str|shared_?access|user_?info|webhook|o_?auth"
    rf"|(?<![a-z])(?:{_KEY_OF})_?keys?(?![a-z])|(?<![a-z])key_pem"
    r"|(?<![a-z])(?:admin|app|auth|bind|db|ftp|key|ldap|login|mail|my|proxy|root|service|smtp|sql|store|svc|user)?pass(?![a-z])"
    r"|pw(?![a-z])|(?<![a-z])(?:client|saml|jwt)_assertion"
    r"|(?<![a-z])(?:creds?|sas|sig|jwt|psk|[th]?otp|pin|auth(?=\Z))(?![a-z])"
)
_HINT = re.compile(
    r"pass|pw|phrase|word|psk|secret|token|cred|jaas|auth|bearer|cookie|si[gd]|conn|str|shared|info|hook|key|sas|jwt|otp"
    r"|pin|assertion|code|session|hmac|hash",
    re.IGNORECASE,
)
_HARMLESS_WHOLE = re.compile(
    r"(?:max|min|num|total|prompt|completion)_tokens?\Z|delta_constraints_|(?:\w+_)?web_?hook_id\Z"
)
_ONLY_WITH_EQUALS = re.compile(r"(?:signature|sig|o_?auth|bearer|auth|pass|sas|(?<![a-z])pin)\Z")

_VALUE_IS_NO_SECRET = word_set("""
    algorithm attempts attribute audience backoff bits buffer bytes class classname column columns count delay
    delimiter deserializer dir directory disabled enable enabled encoding endpoint error exception expiration expires
    expiry factory field fields file filename filepath format function group host hosts impl index interval issuer
    java length level lifetime limit location manager max mech mechanism millis min minutes mode ms num path paths
    pattern policy port prefix provider providers py ratio regex renewer required retries retry scala scheme scope
    scopes sec seconds separator serde serializer size source strategy suffix table threshold timeout topic topics
    ttl type uri url version window
""")
"""Last words that say what a value is, and that it isn't the secret itself. The value is still searched as a text."""

_STRUCTURE_KEY_OF = word_set("""
    aggregation bucket business candidate changelog cluster clustering column composite compound config dedup dedupe
    delete dimension dist distribution document equality event fact field foreign group grouping hash identifier
    index insert join lock lookup map match matching merge message metadata natural object option order ordering
    partition parent pivot precombine primary property range record reference routing row sequence shard sharding sort
    source surrogate table tag target time unique update upsert window
""")
_STRUCTURE_AFTER_KEY = word_set("""
    by columns comparator converter deserializer exclude expression extractor field fields filter format gen
    generator include order partitioner pattern position prefix schema serde serializer separator space store
    strategy subject
""")


def may_name_secret(name: str) -> bool:
    """A cheap first look: no secret's name is without one of these letters in a row."""
    return _HINT.search(name, max(0, len(name) - MAX_NAME)) is not None


def words(name: str) -> list[str]:
    """The words of a name in lower case, however it is written."""
    return [word.lower() for word in _WORD.findall(name[-MAX_NAME:])]


def names_secret(name: str, *, loosely_bound: bool = False) -> bool:
    """Whether what follows this name in a text is a secret.

    `loosely_bound` is for `name: value` without quotes, which is also how prose is written ("method signature: f(x)").
    """
    parts = words(name)
    joined = "_".join(parts)
    if not _SECRET.search(joined) or _is_about(parts, joined):
        return False
    return not (loosely_bound and _ONLY_WITH_EQUALS.search(joined))


def is_secret_option(name: str) -> bool:
    """Whether the value of the option, property or parameter of this name is a secret."""
    parts = words(name)
    joined = "_".join(parts)
    if _is_about(parts, joined):
        return False
    return bool(_SECRET.search(joined)) or any(
        _is_unknown_key(parts, at) for at, part in enumerate(parts) if part == "key"
    )


def _is_about(parts: list[str], joined: str) -> bool:
    """It speaks about a secret without being one; a webhook's or a connection's address is the secret itself."""
    if not parts or "webhook" in parts or "hook" in parts[-2:-1]:
        return False
    return parts[-1] in _VALUE_IS_NO_SECRET or bool(_HARMLESS_WHOLE.match(joined))


def _is_unknown_key(parts: list[str], at: int) -> bool:
    if at and parts[at - 1] in _STRUCTURE_KEY_OF:
        return False
    return not (at + 1 < len(parts) and parts[at + 1] in _STRUCTURE_AFTER_KEY)
