"""A Jupyter kernel: the session is made in a cell, the configuration alone brings headwater in, and the kernel's end is
the run's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

from tests.kit.drivers import SECONDS, SESSION, Ended, Place

pytestmark = [pytest.mark.slow, pytest.mark.spark]


class Notebook:
    """A kernel of its own in the folder of a driver's configuration."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._manager = KernelManager(kernel_name="python3")
        self._manager.shutdown_wait_time = SECONDS  # else Jupyter kills it after half of five seconds
        self._manager.start_kernel(cwd=str(place.folder), env=place.environment)
        self._client: BlockingKernelClient = self._manager.blocking_client()
        self._client.start_channels()
        self._client.wait_for_ready(timeout=SECONDS)

    def cell(self, code: str) -> str:
        """How it went: `ok`, or the name of the error."""
        reply: dict[str, Any] = self._client.execute_interactive(code, timeout=SECONDS, output_hook=lambda _: None)
        content = reply["content"]
        return str(content["status"] if content["status"] == "ok" else content["ename"])

    def shut_down(self) -> Ended:
        self._client.stop_channels()
        self._manager.shutdown_kernel()
        return self._place.ended(0, "", "")

    def kill(self) -> None:
        if self._manager.is_alive():
            self._manager.shutdown_kernel(now=True)


@pytest.fixture
def notebook(tmp_path: Path, java_home: Path) -> Iterator[Notebook]:
    made = Notebook(Place(tmp_path, java_home))
    yield made
    made.kill()


@pytest.mark.long
def test_a_kernel_is_a_run_from_its_session_to_its_shutdown(notebook: Notebook) -> None:
    assert notebook.cell(SESSION) == "ok"
    assert notebook.cell("spark.range(3).write.saveAsTable('first')") == "ok"
    fails = "INSERT INTO first SELECT CAST(raise_error('no') AS BIGINT) FROM first"
    assert notebook.cell(f'spark.sql("{fails}")') != "ok"
    assert notebook.cell("1 / 0") == "ZeroDivisionError"
    assert notebook.cell("spark.table('first').write.saveAsTable('second')") == "ok"
    ended = notebook.shut_down()
    assert ended.kinds()[0] == "JobStarted"
    assert [event["outputs"][0]["table"]["table"] for event in ended.of("Committed")] == ["first", "second"]
    (failed,) = ended.of("StatementFailed")
    assert failed["job"]["name"] == "orders.spark_catalog.default.first"
    assert ended.statuses() == ["orders ENDED"]
    assert ended.kinds()[-1] == "Closed"
    assert len({event["run"] for event in ended.events}) == 1
