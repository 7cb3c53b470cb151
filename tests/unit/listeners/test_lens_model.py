"""What a lens can say, and how `headwater run` reads it from flags. No Spark here."""

from __future__ import annotations

from typing import Any

import pytest

from headwater.cli.app import main
from headwater.cli.run import split
from headwater.lens import Lens, LensError


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"name": " "}, "a name"),
        ({"allowed": "lake.a"}, r"allowed=\['lake.a'\]"),
        ({"pins": {"lake.a": ""}}, "lake.a can't be pinned"),
        ({"pins": {"lake.a": True}}, "lake.a can't be pinned"),
        ({"redirects": {"lake.a": "lake.a"}}, "redirected to itself"),
    ],
)
def test_a_lens_that_cant_be_is_refused(asked: dict[str, Any], words: str) -> None:
    """Fails if a contradiction is found only by a statement, or never."""
    with pytest.raises(LensError, match=words):
        Lens(**asked)


@pytest.mark.parametrize(
    ("asked", "may"),
    [({}, True), ({"redirects": {"a": "b"}}, False), ({"redirects": {"a": "b"}, "writes_elsewhere": True}, True)],
)
def test_only_a_lens_without_redirects_lets_writes_be(asked: dict[str, Any], may: bool) -> None:
    """Fails if a run to try something may write real tables unless it is told not to."""
    assert Lens(**asked).allows_writes_elsewhere is may


def test_flags_of_a_lens_stand_before_the_script() -> None:
    """Fails if a flag's value is taken for the script."""
    own = ["--pin", "lake.a@8", "--redirect", "lake.b=lake.c", "--allow", "lake.d", "--lens", "try"]
    assert split([*own, "job.py", "--pin", "x"]) == (own, ["job.py", "--pin", "x"])


@pytest.mark.parametrize("flag", [["--pin", "lake.a"], ["--redirect", "lake.a"]])
def test_a_flag_that_cant_be_read_says_how_it_is_written(flag: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Fails if the script is run without what the flag was to say."""
    with pytest.raises(SystemExit, match="2"):
        main(["run", *flag, "job.py"])
    assert "isn't" in capsys.readouterr().err


def test_a_servers_sessions_have_no_lens(capsys: pytest.CaptureFixture[str]) -> None:
    """Fails if a server is started whose sessions read past the lens."""
    with pytest.raises(SystemExit, match="2"):
        main(["run", "--connect", "--pin", "lake.a@8"])
    assert "for scripts" in capsys.readouterr().err
