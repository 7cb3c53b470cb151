"""Values of options, properties and settings: what is kept of them is listed, or plain."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable
from typing import Final

from headwater.events.redaction._folding import lazy, word_set
from headwater.events.redaction._names import squash
from headwater.events.redaction._texts import REDACTED, has_secret

_LONGEST_PLAIN: Final = 100
_RUN: Final = lazy(r"[A-Za-z0-9+/_=-]{20,}")
_HEX_RUN: Final = lazy(r"(?=[0-9]*[a-z])(?=[a-z]*[0-9])[a-z0-9]{32,}")
_MARK: Final = lazy(re.escape(REDACTED) + r"(?: [0-9a-f]{4}\.[0-9a-f]{8})?")
_SWITCHES: Final = frozenset(["", "true", "false"])
_ASSIGNS: Final = lazy(r"[='\"<]")

HARMLESS: Final = frozenset(
    map(
        squash,
        word_set("""
    format provider type path paths location warehouse topic subscribe subscribePattern assign schema header
    bootstrap.servers startingOffsets endingOffsets startingOffsetsByTimestamp endingOffsetsByTimestamp
    catalog-impl io-impl metastore.uris spark.jars spark.jars.packages spark.sql.extensions
    spark.sql.catalogImplementation spark.sql.warehouse.dir checkpointLocation partitionColumnNames
    spark.sql.partitionProvider

    primary-key primary-keys bucket-key bucket-keys merge-key merge-keys partition-key partition-keys sort-key
    sort-keys cluster-key foreign-key unique-key record-key row-key distribution-key hash-key range-key
    lookup-keys join-key dedup-key message.key.columns key.fields key.fields-prefix key.deserializer
    key.serializer key.format key.converter key-format include-keys lock_key hoodie.table.key.generator.class

    truststore.location keystore.location keystore.type truststore.type ssl.key.location keytab.file keytab
    principal credentials.provider credential.provider.path account.auth.type oauth.provider.type
    oauth2.client.endpoint token.endpoint.url credentials.source oauth2-server-uri sasl.mechanism
    security.protocol hive.enabled token-refresh-enabled aggregate-function sequence-group password-file
    password.file password-callable secret.file spark.authenticate spark.redaction.regex redaction.options.regex
    redaction.string.regex partition.keys.num max.tokens
"""),
    )
)
"""Options whose value is no secret, however they are called and however long it is; matched with the last parts of a
name, so that `spark.sql.catalog.lake.warehouse` is `warehouse`."""


def is_harmless(key: str, more: Iterable[str] = ()) -> bool:
    """Whether the option, or what its name ends with, is listed."""
    parts = key[-256:].split(".")
    ends = {squash(".".join(parts[at:])) for at in range(max(0, len(parts) - 8), len(parts))}
    return not (HARMLESS.isdisjoint(ends) and frozenset(more).isdisjoint(ends))


def is_assignment_of_secret(value: str) -> bool:
    """Whether the value gives a secret: of a listed option it may name one, as in `primary-key = token_id`."""
    return _ASSIGNS.search(value) is not None and has_secret(value)


def is_plain(value: str) -> bool:
    """Whether the value is short, names no secret, and holds nothing that looks like a key."""
    return (
        len(value) <= _LONGEST_PLAIN
        and "\n" not in value
        and not any(_is_random(run) for run in _RUN.findall(value))
        and not _HEX_RUN.search(value)
        and not has_secret(value)
    )


def _is_random(run: str) -> bool:
    return not (run.isupper() or run.islower()) and any(map(str.isdigit, run))


def squash_names(text: str) -> frozenset[str]:
    """The names of a list such as `redaction.keep`, as they are compared."""
    return frozenset(filter(None, map(squash, text.split(","))))


def hidden_value(key: str, value: str, hash_key: bytes | None) -> str:
    """The mark for a value. With a key it has a hash, so that another value is seen to be another one: four digits
    that say which key it is, and eight that say which value."""
    if value in _SWITCHES or _MARK.fullmatch(value):
        return value
    if hash_key is None:
        return REDACTED
    content = f"{squash(key)}\0{value}".encode("utf-8", "surrogatepass")
    return f"{REDACTED} {_digest(hash_key, b'')[:4]}.{_digest(hash_key, content)[:8]}"


def _digest(key: bytes, content: bytes) -> str:
    return hmac.new(key, content, hashlib.sha256).hexdigest()
