"""The log of a process shows no secret, also where an error of somebody else's code holds one."""

from __future__ import annotations

import logging

import pytest

from headwater.cli.logs import logging_as


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_traceback_hides_secrets(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    with logging_as(form, "info"):
        error = RuntimeError("POST https://writer:hunter22@catalog/events failed")
        logging.getLogger("headwater.forwarders").warning("it failed on events", exc_info=error)
    shown = capsys.readouterr().err
    assert "RuntimeError: POST *********(redacted)" in shown, "what comes behind may belong to it"
    assert "hunter22" not in shown
