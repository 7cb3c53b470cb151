"""The options of a read or write, as far as they are the same in every run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from headwater.events.fingerprints._option_rules import Rule, folded, rule_of
from headwater.events.fingerprints._staging import without_staging
from headwater.events.jobs import SinkSchema, SourceSchema
from headwater.events.redaction import REDACTED, canonical_text, mask_literals
from headwater.events.scalars import Format

_TEXTS_IN_DOUBLE_QUOTES: Final = ("mysql:", "mariadb:")


def canonical_options(ref: SourceSchema | SinkSchema) -> list[tuple[str, str | None]]:
    """Names and values, sorted; no value where only the name counts."""
    return sorted(_significant_options(ref), key=lambda option: (option[0], option[1] or ""))


def _significant_options(ref: SourceSchema | SinkSchema) -> Iterator[tuple[str, str | None]]:
    for name, value in ref.options.items():
        key = folded(name)
        rule = rule_of(key)
        if rule is Rule.DROPPED or (rule is Rule.PLACE and ref.dataset is not None):
            continue
        if rule is Rule.MASKED or value.startswith(REDACTED):  # a hash in the mark is another one in each driver
            yield key, None
        else:
            yield key, _sql(ref, value) if rule is Rule.SQL else without_staging(value)


def is_sql_option(name: str) -> bool:
    """Whether the option's value is a statement, which counts without its literals."""
    return rule_of(folded(name)) is Rule.SQL


def _sql(ref: SourceSchema | SinkSchema, text: str) -> str:
    """Spark and MySQL have texts in double quotes, the other databases names."""
    if ref.format is not Format.JDBC or _database(ref).startswith(_TEXTS_IN_DOUBLE_QUOTES):
        return canonical_text(text)
    return " ".join(mask_literals(text, double_quoted_names=True).split())


def _database(ref: SourceSchema | SinkSchema) -> str:
    if ref.dataset is not None:
        return ref.dataset.namespace
    return folded(ref.options.get("url", "")).removeprefix("jdbc:")
