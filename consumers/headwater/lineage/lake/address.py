"""The address of a lake store: a table format, a catalog and a namespace in it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from typing_extensions import Self

from headwater.errors import ConfigurationError

ICEBERG: Final = "iceberg"
DELTA: Final = "delta"
_FORMATS: Final = (ICEBERG, DELTA)
_OTHER_FORMATS: Final = ("paimon", "hudi")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class LakeAddress:
    """`iceberg:CATALOG.NAMESPACE`, or `delta:…`: the catalog as Spark and pyiceberg are configured to know
    it."""

    catalog: str
    namespace: tuple[str, ...]
    format: str = ICEBERG

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse an address, or raise a ConfigurationError that says how it is written."""
        scheme, _, rest = text.partition(":")
        if scheme in _OTHER_FORMATS:
            raise ConfigurationError(
                f"a lake store is made of Iceberg or Delta tables; {scheme} isn't supported: write "
                "iceberg:CATALOG.NAMESPACE or delta:…"
            )
        parts = rest.split(".")
        if scheme not in _FORMATS or len(parts) < 2 or not all(map(_NAME.fullmatch, parts)):
            raise ConfigurationError(
                f"{text!r} isn't a lake store: write iceberg:CATALOG.NAMESPACE or delta:…, in letters, digits and "
                "underscores"
            )
        return cls(parts[0], tuple(parts[1:]), scheme)

    @staticmethod
    def is_lake(text: str) -> bool:
        """Return whether a store's address is that of a lake, supported or not."""
        return text.partition(":")[0] in {*_FORMATS, *_OTHER_FORMATS}

    @property
    def words(self) -> str:
        """The address as it is printed."""
        return f"{self.format}:{'.'.join((self.catalog, *self.namespace))}"

    @property
    def quoted_namespace(self) -> str:
        """The namespace in Spark's SQL."""
        return ".".join(f"`{part}`" for part in (self.catalog, *self.namespace))

    def table(self, name: str) -> str:
        """Return a table's name in Spark's SQL."""
        return f"{self.quoted_namespace}.`{name}`"
