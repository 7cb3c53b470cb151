"""`headwater spool ship`, as somebody has it who sits before it: what is meant, what is said, how it ends."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from headwater.cli import main
from headwater.cli.exits import Exit
from headwater.errors import TransientError
from headwater.events import Heartbeat
from headwater.events.envelope import Event
from headwater.spi import RecordBatch, SpoolPosition
from tests.kit.bus.scripts import SCRIPTS, Taking, bus_of, emit_all, firsts, ids

pytestmark = pytest.mark.slow

LISTENERS = "spark.headwater.listeners=mine=tests.kit.bus.scripts:ScriptFactory"


class Away(Taking):
    def handle(self, batch: RecordBatch) -> SpoolPosition | None:
        raise TransientError("the broker is away")


def left_in(spools: Path, count: int = 3, name: str = "mine") -> tuple[Path, list[Event]]:
    with bus_of(spools, {name: lambda _: Away()}) as bus:
        emitted = emit_all(bus, [Heartbeat()] * count)
        spool = bus.spool
        assert not bus.stop(0.2)
    assert spool is not None
    return spool, emitted


def ship(spools: Path, *arguments: object) -> int:
    return main(["--output", "json", "spool", "ship", "--spool-dir", str(spools), *map(str, arguments)])


def taking() -> list[Taking]:
    """The instances that are made from now on."""
    made: list[Taking] = []

    def make(_: object) -> Taking:
        made.append(Taking())
        return made[-1]

    SCRIPTS["mine"] = make
    return made


def test_only_the_spools_that_are_meant(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (one, emitted), (other, _) = left_in(tmp_path), left_in(tmp_path)
    made = taking()
    assert ship(tmp_path, "--conf", LISTENERS, one.name) == Exit.DONE
    assert [one.exists(), other.exists()] == [False, True]
    assert json.loads(capsys.readouterr().out)["shipped"] == {"spools": 1, "left": 0}
    assert firsts([record for each in made for record in each.records]) == ids(emitted)
    assert ship(tmp_path, "--conf", LISTENERS, one.name) == Exit.FAILED
    assert f"there is no spool {one.name}" in capsys.readouterr().err


@pytest.mark.slow
def test_the_drivers_own_properties_file(tmp_path: Path) -> None:
    spools, shared, defaults = tmp_path / "spools", tmp_path / "shared", tmp_path / "spark-defaults.conf"
    keys = {"spool.handover": str(shared)}
    with bus_of(spools, {"mine": lambda _: Away()}, keys) as bus:
        emitted = emit_all(bus, [Heartbeat()] * 4)
        assert not bus.stop(1)
    (handed,) = shared.iterdir()
    local, also = left_in(spools)
    key, _, value = LISTENERS.partition("=")
    defaults.write_text(
        f"# as the drivers have it\nspark.master local[2]\n{key} {value}\nspark.headwater.spool.handover {shared}\n"
    )
    made = taking()
    assert ship(spools, "--properties-file", defaults) == Exit.DONE
    assert [handed.exists(), local.exists()] == [False, False]
    assert set(firsts([record for each in made for record in each.records])) == {*ids(emitted), *ids(also)}


def test_only_what_stands_where_from_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A directory, or one file in it; spools of this host stay, and so do other files."""
    spools, shared = tmp_path / "spools", tmp_path / "shared"
    emitted = []
    for _ in range(2):
        with bus_of(spools, {"mine": lambda _: Away()}, {"spool.handover": str(shared)}) as bus:
            emitted.append(emit_all(bus, [Heartbeat()] * 4))
            assert not bus.stop(1)
    local, _ = left_in(spools)
    chosen = next(each for each in shared.iterdir() if str(emitted[1][0].producer) in each.name)
    (other,) = (each for each in shared.iterdir() if each != chosen)
    made = taking()
    assert ship(spools, "--conf", LISTENERS, "--from", chosen) == Exit.DONE
    assert json.loads(capsys.readouterr().out)["shipped"] == {"spools": 1, "left": 0}
    assert [chosen.exists(), other.exists(), local.exists()] == [False, True, True]
    assert firsts([record for each in made for record in each.records]) == ids(emitted[1])
    (shared / "foreign.avro").write_bytes(b"Obj")
    assert ship(spools, "--conf", LISTENERS, "--from", shared) == Exit.TRY_AGAIN
    assert "foreign.avro: it isn't a whole file that headwater wrote" in capsys.readouterr().err
    assert [other.exists(), local.exists()] == [False, True]


@pytest.mark.slow
def test_a_target_that_is_away_is_reported_and_nothing_is_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spool, emitted = left_in(tmp_path)
    SCRIPTS["mine"] = lambda _: Away()
    began = time.monotonic()
    assert ship(tmp_path, "--conf", LISTENERS, "--timeout", "300 ms") == Exit.TRY_AGAIN
    assert time.monotonic() - began < 50, "else it is waited for as long as something may move"
    shown = capsys.readouterr()
    error = json.loads(shown.err.splitlines()[-1])
    assert error["error"] == "TransientError"
    assert "mine says TransientError: the broker is away" in error["message"]
    assert spool.name in error["message"]
    assert "mine: TransientError: the broker is away" in shown.err, "and at once"
    made = taking()
    assert ship(tmp_path, "--conf", LISTENERS) == Exit.DONE
    assert firsts([record for each in made for record in each.records]) == ids(emitted)
    assert not spool.exists()


@pytest.mark.slow
def test_one_that_cannot_be_made_now_is_not_waited_for_for_ever(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    left_in(tmp_path)

    def unreachable(_: object) -> Taking:
        raise TransientError("no route to the broker")

    SCRIPTS["mine"] = unreachable
    assert ship(tmp_path, "--conf", LISTENERS, "--timeout", "0.3") == Exit.TRY_AGAIN
    assert "no route to the broker" in capsys.readouterr().err


def test_beside_a_driver_that_runs(tmp_path: Path) -> None:
    spool, emitted = left_in(tmp_path)
    running = Taking()
    with bus_of(tmp_path, {"another": lambda _: running}) as bus:
        own = emit_all(bus, [Heartbeat()] * 2)
        made = taking()
        assert ship(tmp_path, "--conf", LISTENERS) == Exit.DONE
        assert not spool.exists()
        own += emit_all(bus, [Heartbeat()])
        assert bus.flush(60)
    assert ids(running.records) == ids(own)
    assert firsts([record for each in made for record in each.records]) == ids(emitted)


@pytest.mark.slow
def test_shipping_never_lets_a_spool_go_for_want_of_room(tmp_path: Path) -> None:
    """The limit is the drivers', and may not be given here."""
    left = [left_in(tmp_path, 3, "another")[0] for _ in range(5)]
    room = sum(each.stat().st_size for spool in left for each in spool.iterdir() if each.is_file())
    assert room > 4 * (64 << 10), "it wouldn't be above the limit, and this test shows nothing"
    taking()
    conf = ["--conf", LISTENERS, "--conf", "spark.headwater.spool.max.bytes=64k"]
    assert ship(tmp_path, *conf) == Exit.TRY_AGAIN
    assert all(each.exists() for each in left)


def test_a_duration_that_is_none_is_wrong_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match=str(Exit.USAGE.value)):
        ship(tmp_path, "--timeout", "soon")
    assert "write a duration" in capsys.readouterr().err
