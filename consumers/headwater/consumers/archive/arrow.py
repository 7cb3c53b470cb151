"""pyarrow, as `Any`: the library has no types, and type checkers see only a part of its functions."""

from __future__ import annotations

from typing import Any, Final

import pyarrow  # noqa: ICN001 - `pa` is without types
import pyarrow.compute
import pyarrow.parquet

pa: Final[Any] = pyarrow
pc: Final[Any] = pyarrow.compute
pq: Final[Any] = pyarrow.parquet
ArrowTable = Any
"""A pyarrow.Table."""
