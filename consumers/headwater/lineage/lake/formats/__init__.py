"""The table formats that a lake store can be made of, one module each. All implement `LakeFormat`."""

from __future__ import annotations

from typing import Final

from headwater.lineage.lake.address import DELTA, ICEBERG, LakeAddress
from headwater.lineage.lake.formats.base import LakeFormat, SqlSession
from headwater.lineage.lake.formats.delta import DeltaLakeFormat
from headwater.lineage.lake.formats.iceberg import IcebergLakeFormat

__all__ = ["LakeFormat", "SqlSession", "format_of"]

_FORMATS: Final[dict[str, LakeFormat]] = {ICEBERG: IcebergLakeFormat(), DELTA: DeltaLakeFormat()}


def format_of(address: LakeAddress) -> LakeFormat:
    """Return the format of a lake's tables."""
    return _FORMATS[address.format]
