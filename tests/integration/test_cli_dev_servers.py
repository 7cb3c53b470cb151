"""`headwater dev up` starts a real server, says where it is, and leaves nothing."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest

from headwater.cli import main
from headwater.cli.exits import Exit
from headwater.local.addresses import query_fault

UP = [sys.executable, "-m", "headwater.cli", "--output", "json", "dev", "up"]


@pytest.mark.database
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_servers_run_until_they_are_told_to_stop(number: signal.Signals) -> None:
    with subprocess.Popen([*UP, "postgres"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        variables = json.loads(process.stdout.readline())["variables"]
        assert list(variables) == ["HEADWATER_POSTGRES"]
        fault = query_fault(variables["HEADWATER_POSTGRES"])
        process.send_signal(number)
        assert process.wait(60) == Exit.DONE
    assert fault is None, "it answered"
    assert query_fault(variables["HEADWATER_POSTGRES"]) is not None


def test_a_server_that_there_is_none_of_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["dev", "up", "kafak"])
    assert "no server 'kafak'; did you mean 'kafka'?" in capsys.readouterr().err
