"""The small types that fields of events are made of; each fits its Avro form exactly, so that a valid event encodes."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from enum import Enum
from typing import Annotated, Final, TypeAlias

from pydantic import AfterValidator, Field

from headwater.events.marks import Identity, SqlText, Truncatable

Long: TypeAlias = Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]
Count: TypeAlias = Annotated[int, Field(ge=0, le=2**63 - 1)]

ListPosition: TypeAlias = Annotated[int, Field(ge=0, le=2**31 - 1)]
"""A place in a list, to which another one may be added."""
Int: TypeAlias = Annotated[int, Field(ge=-(2**31), le=2**31 - 1)]
Fingerprint: TypeAlias = Annotated[bytes, Field(min_length=16, max_length=16)]
"""128 bits over the canonical content of something."""
FieldPath: TypeAlias = Annotated[tuple[str, ...], Field(min_length=1), Identity()]
"""A column, or a field nested in it: struct fields by name, `element`, `key` and `value` as Spark names them."""

IdentityString: TypeAlias = Annotated[str, Identity()]
"""What tells one thing from another. Of another text redaction takes more."""
TruncatableText: TypeAlias = Annotated[str, Truncatable()]
"""For people."""
SqlString: TypeAlias = Annotated[str, Truncatable(), SqlText()]
"""A statement, or a part of one, without its literals unless capture.sql is true."""

EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)


def _utc(time: datetime) -> datetime:
    if time.tzinfo is timezone.utc:
        return time
    if time.tzinfo is None:
        raise ValueError("a time needs its zone: datetime.now(timezone.utc), say")
    return time.astimezone(timezone.utc)


Timestamp: TypeAlias = Annotated[datetime, AfterValidator(_utc)]
"""A moment in UTC, to the microsecond."""


class EventEnum(str, Enum):
    """A closed set of words. Each subclass has a member that an old reader falls back to: UNKNOWN, or OTHER."""

    def __str__(self) -> str:
        return str(self.value)

    @classmethod
    def fallback(cls) -> str:
        """The symbol for what a newer writer may say and this reader doesn't know."""
        return "UNKNOWN" if "UNKNOWN" in cls.__members__ else "OTHER"


_FORMAT_NAME: Final = re.compile(r"[A-Z][A-Z0-9_.-]{0,62}")


class Format(EventEnum):
    """How a dataset is stored. A format that isn't listed here is told by its name, in upper case.

    >>> Format("ICEBERG") is Format.ICEBERG
    True
    >>> Format("ACME").value, Format("ACME").is_listed
    ('ACME', False)
    """

    UNKNOWN = "UNKNOWN"
    OTHER = "OTHER"
    ICEBERG = "ICEBERG"
    DELTA = "DELTA"
    PAIMON = "PAIMON"
    HUDI = "HUDI"
    HIVE = "HIVE"
    PARQUET = "PARQUET"
    ORC = "ORC"
    AVRO = "AVRO"
    CSV = "CSV"
    JSON = "JSON"
    TEXT = "TEXT"
    XML = "XML"
    BINARY = "BINARY"
    JDBC = "JDBC"
    KAFKA = "KAFKA"
    VIEW = "VIEW"

    @classmethod
    def _missing_(cls, value: object) -> Format | None:
        if not isinstance(value, str) or not _FORMAT_NAME.fullmatch(value):
            return None
        found = str.__new__(cls, value)
        found._name_ = found._value_ = value
        return found

    @property
    def is_listed(self) -> bool:
        return self.name in Format.__members__

    @property
    def has_versions(self) -> bool:
        """Whether each commit is known to make one."""
        return self in _VERSIONED

    @property
    def has_ordered_snapshots(self) -> bool:
        """Whether a snapshot's id is known to be greater than those that came before it."""
        return self.is_listed and self not in _WITHOUT_ORDER


_VERSIONED: Final = frozenset({Format.ICEBERG, Format.DELTA, Format.PAIMON, Format.HUDI, Format.KAFKA})
_WITHOUT_ORDER: Final = frozenset({Format.ICEBERG, Format.OTHER})
