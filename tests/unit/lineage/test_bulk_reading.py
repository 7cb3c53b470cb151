"""Reading what a writer keeps of itself, where the database isn't there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import create_engine

from headwater.lineage.bulk.database import DatabaseBulkMeta
from headwater.lineage.sql.errors import StoreUnreachableError

QUESTIONS: list[Callable[[DatabaseBulkMeta], Any]] = [
    lambda store: store.offsets("group"),
    lambda store: list(store.instants(UUID(int=1))),
    lambda store: list(store.dead_letters()),
    lambda store: store.dead_letter("0" * 32),
    lambda store: store.epoch(),
]


@pytest.mark.parametrize("ask", QUESTIONS, ids=["offsets", "instants", "letters", "letter", "epoch"])
def test_who_asks_is_told_to_wait(ask: Callable[[DatabaseBulkMeta], Any]) -> None:
    store = DatabaseBulkMeta(create_engine("postgresql+psycopg://nobody@127.0.0.1:1/nothing"))
    with pytest.raises(StoreUnreachableError, match="is it running"):
        ask(store)
