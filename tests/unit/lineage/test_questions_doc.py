"""docs/questions.md shows what is really printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from headwater.cli.app import main
from headwater.lineage.store import open_store
from tests.kit.lineage.all_stories import guide
from tests.kit.lineage.scripted_producer import store
from tests.kit.lineage.stories import StoryProducer

PAGE = Path(__file__).parents[3] / "docs" / "questions.md"
SHOWN = re.findall(r"```\n\$ headwater (lineage [^\n]*)\n(.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.mark.slow
def test_what_the_page_shows_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"sqlite:///{tmp_path / 'lineage.db'}"
    producer = StoryProducer()
    guide(producer)
    with open_store(url) as opened, opened.engine.begin() as connection:
        store(connection, producer)
    monkeypatch.setenv("HEADWATER_STORE", url)
    assert len(SHOWN) >= 6
    for command, output in SHOWN:
        main(command.split())
        printed = capsys.readouterr()
        assert printed.out + printed.err == output, command
