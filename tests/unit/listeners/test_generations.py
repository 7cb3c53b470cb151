"""Which generation of a table, by what its format tells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from headwater.events.identity import IdentityError
from headwater.listeners.capture.formats.delta.table_refs import parse_metadata_id
from headwater.listeners.capture.formats.iceberg.table_refs import parse_table_uuid
from headwater.listeners.capture.formats.paimon.tables import parse_creation_time

U = "9c12d441-03fe-4693-9a96-a0705ddf69c1"


@pytest.mark.parametrize(
    ("parse", "fact", "generation"),
    [
        (parse_table_uuid, U, UUID(U)),
        (parse_table_uuid, U.upper(), UUID(U)),
        (parse_metadata_id, U, UUID(U)),
        (parse_metadata_id, "testId", "testId"),
        (parse_creation_time, "1700000000123", "1700000000123"),
        (parse_creation_time, "01700000000123", "1700000000123"),
        (parse_creation_time, 1700000000123, "1700000000123"),
    ],
)
def test_generation(parse: Callable[[Any], UUID | str], fact: Any, generation: UUID | str) -> None:
    assert parse(fact) == generation


@pytest.mark.parametrize(
    ("parse", "fact"),
    [
        (parse_table_uuid, "x"),
        (parse_table_uuid, ""),
        (parse_table_uuid, U.replace("-", "")),
        (parse_metadata_id, ""),
        (parse_creation_time, "yesterday"),
        (parse_creation_time, "0"),
        (parse_creation_time, "-5"),
    ],
)
def test_a_malformed_fact_is_never_passed_over(parse: Callable[[Any], UUID | str], fact: Any) -> None:
    with pytest.raises(IdentityError):
        parse(fact)
