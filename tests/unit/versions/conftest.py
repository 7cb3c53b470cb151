"""A store that questions about data versions are asked of."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, create_engine

from headwater.lineage.sql import METADATA


@pytest.fixture
def connection() -> Iterator[Connection]:
    engine = create_engine("sqlite://")
    METADATA.create_all(engine)
    with engine.connect() as connection:
        yield connection
    engine.dispose()
