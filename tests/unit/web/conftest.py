"""A store of stories, and a server over it, without a socket."""

from __future__ import annotations

from collections.abc import Callable, Generator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from headwater.lineage.store import Store
from headwater.web import WebSettings, create_app
from tests.kit.lineage.all_stories import columns, diamond, guide, several_outputs
from tests.kit.lineage.scripted_producer import store as store_events
from tests.kit.lineage.stories import StoryProducer
from tests.kit.stores import open_new_store

Opener = Callable[..., TestClient]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Generator[Store]:
    with open_new_store(str(tmp_path_factory.mktemp("web") / "store.db")) as made:
        producer = StoryProducer()
        for story in (guide, diamond, columns, several_outputs):
            story(producer)
        with made.engine.begin() as connection:
            store_events(connection, producer)
        yield made


@pytest.fixture
def open_site(store: Store) -> Opener:
    """Opens a client of a server with these settings; it asks from 192.0.2.7 where that matters."""

    def opened(*, peer: str = "127.0.0.1", host: str = "127.0.0.1", **settings: object) -> TestClient:
        app = create_app(store, WebSettings(**settings))  # type: ignore[arg-type]
        return TestClient(app, base_url=f"http://{host}:8090", client=(peer, 50_000), follow_redirects=False)

    return opened


@pytest.fixture
def site(open_site: Opener) -> TestClient:
    return open_site()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path
