"""The address of a lake store: a catalog and a namespace in it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from typing_extensions import Self

from headwater.errors import ConfigurationError

_SCHEME: Final = "iceberg:"
_OTHER_FORMATS: Final = ("delta:", "paimon:", "hudi:")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class LakeAddress:
    """`iceberg:CATALOG.NAMESPACE`: the catalog as Spark and pyiceberg are configured to know it."""

    catalog: str
    namespace: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse an address, or raise a ConfigurationError that says how it is written."""
        if text.startswith(_OTHER_FORMATS):
            raise ConfigurationError(
                f"a lake store is made of Iceberg tables; {text.partition(':')[0]} isn't supported: write "
                "iceberg:CATALOG.NAMESPACE"
            )
        parts = text.removeprefix(_SCHEME).split(".")
        if not text.startswith(_SCHEME) or len(parts) < 2 or not all(map(_NAME.fullmatch, parts)):
            raise ConfigurationError(
                f"{text!r} isn't a lake store: write iceberg:CATALOG.NAMESPACE, in letters, digits and underscores"
            )
        return cls(parts[0], tuple(parts[1:]))

    @staticmethod
    def is_lake(text: str) -> bool:
        """Return whether a store's address is that of a lake, supported or not."""
        return text.startswith((_SCHEME, *_OTHER_FORMATS))

    @property
    def words(self) -> str:
        """The address as it is printed."""
        return f"{_SCHEME}{'.'.join((self.catalog, *self.namespace))}"

    @property
    def quoted_namespace(self) -> str:
        """The namespace in Spark's SQL."""
        return ".".join(f"`{part}`" for part in (self.catalog, *self.namespace))

    def table(self, name: str) -> str:
        """Return a table's name in Spark's SQL."""
        return f"{self.quoted_namespace}.`{name}`"
