"""Whatever a configuration says where: no secret of it is in what `headwater doctor` prints."""

from __future__ import annotations

import contextlib
import io
import logging
import re
import string
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final
from unittest import mock
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headwater.cli import doctor, main
from headwater.cli.doctor import listeners
from headwater.cli.doctor.configuration import SecretMasker
from headwater.errors import HeadwaterError
from headwater.lineage.store.engines import engine_for
from headwater.lineage.store.options import StoreOptions
from headwater.spi import CheckResult, Listener, ListenerContext
from headwater.testing.memory import MemoryListener
from tests.kit.effort import examples

SECRETS: Final = st.text(string.ascii_letters + string.digits + "!$%&+*~#-", min_size=8, max_size=24)
LOOKS: Final = st.sampled_from(["text", "json"])
PLACES: Final = (
    ("spark.headwater.kafka.producer.sasl.password", "{}"),
    ("spark.headwater.kafka.producer.ssl.key.password", "{}"),
    ("spark.headwater.kafka.producer.sasl.jaas.config", "org.x.ScramLoginModule required username='me' password='{}';"),
    ("spark.headwater.kafka.producer.sasl.oauthbearer.client.secret", "{}"),
    ("spark.headwater.kafka.schema.registry.basic.auth.user.info", "me:{}"),
    ("spark.headwater.kafka.schema.registry.url", "http://me:{}@127.0.0.1:1"),
    ("spark.headwater.kafka.bootstrap.servers", "SASL_SSL://me:{}@127.0.0.1:1"),
    ("spark.headwater.kafka.topic.create", "password={}"),
    ("spark.headwater.talking.password", "{}"),
    ("spark.headwater.talking.url", "https://me:{}@there/"),
    ("spark.headwater.talking.login.jaas.config", "org.x.LoginModule required username='me' password='{}';"),
    ("spark.headwater.log.token", "{}"),
    ("spark.headwater.spool.password", "{}"),
    ("spark.hadoop.fs.s3a.secret.key", "{}"),
)


class Talking:
    """Says all it knows."""

    def create(self, context: ListenerContext) -> Listener:
        return MemoryListener()

    def diagnose(self, context: ListenerContext) -> Iterator[CheckResult]:
        for key, value in context.configuration.items():
            yield CheckResult.warning(key, f"{key} is {value}", f"don't say {value}")
            for part in re.split(r"[:/@' ]", value):
                yield CheckResult.error("part", part, part)
        raise RuntimeError(str(dict(context.configuration)))


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("doctor")


@pytest.mark.slow
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(secret=SECRETS, places=st.sets(st.sampled_from(PLACES), min_size=2), look=LOOKS)
def test_no_planted_secret_is_printed(scratch: Path, secret: str, places: set[tuple[str, str]], look: str) -> None:
    assert secret not in printed(scratch, {key: value.format(secret) for key, value in places}, look)


@pytest.mark.slow
@pytest.mark.parametrize(("key", "value"), PLACES, ids=[key for key, _ in PLACES])
@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(secret=SECRETS, look=LOOKS)
def test_nor_is_one_that_stands_in_one_place_only(scratch: Path, key: str, value: str, secret: str, look: str) -> None:
    assert secret not in printed(scratch, {key: value.format(secret)}, look)


def printed(scratch: Path, planted: dict[str, str], look: str) -> str:
    """The page, and the same without its line breaks."""
    conf = {
        "spark.headwater.listeners": f"talking={__name__}:Talking,kafka,log,nobody",
        "spark.headwater.kafka.bootstrap.servers": "127.0.0.1:1",
        "spark.headwater.spool.dir": str(scratch / "spools"),
        "spark.headwater.log.dir": str(scratch / "log"),
        **planted,
    }
    out, err = io.StringIO(), io.StringIO()
    arguments = [each for name, value in conf.items() for each in ("--conf", f"{name}={value}")]
    no_processes = (  # what starts one knows nothing of the configuration
        mock.patch.object(doctor, "check_installation", return_value=iter(())),
        mock.patch.object(listeners, "check_start"),
    )
    with no_processes[0], no_processes[1], contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        main(["--output", look, "doctor", *arguments])
    assert "listener talking" in out.getvalue()
    page = out.getvalue() + err.getvalue()
    return page + "".join(page.split())


def test_what_looks_like_a_secret_is_hidden_wherever_it_is_from() -> None:
    hidden = SecretMasker({}).mask(
        CheckResult.error("x", "AKIAIOSFODNN7EXAMPLE was refused", "try https://me:hunter2@there/")
    )
    assert "AKIAIOSFODNN7EXAMPLE" not in hidden.message
    assert "hunter2" not in hidden.advice


def test_a_short_secret_is_hidden_as_a_word_only() -> None:
    secrets = SecretMasker({"spark.headwater.kafka.producer.sasl.password": "in"})
    assert secrets.text("in vain: the answer is in") == "*** vain: the answer is ***"
    assert secrets.text("the main line") == "the main line"


@pytest.mark.parametrize("folder", ["secrets", "token-service", "my password/x"])
def test_what_is_advised_can_be_read_wherever_this_python_is(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Finds a page that hides its own commands, at the path that somebody's checkout has."""
    python = f"/srv/{folder}/main/.venv"
    monkeypatch.setattr(sys, "prefix", python)
    secrets = SecretMasker({"spark.headwater.kafka.producer.sasl.password": "hunter2"})
    advice = f"'{python}/bin/python' -m pip install pyarrow"
    assert secrets.text(advice) == advice
    assert "hunter3" not in secrets.text(f"in {python} is token=hunter3")
    assert "hunter3" not in secrets.text(f"{python}:hunter3")
    assert "hunter2" not in secrets.text(f"{python}/hunter2")


# A password that is planted anywhere in a store's options shows in no words: of options, engines, errors, logs.


SECRET = st.text("abcXYZ0189%&=?#@:/\\ '\"\N{SNOWMAN}", min_size=8, max_size=16).map(
    lambda text: f"5ecr\N{LATIN SMALL LETTER E WITH ACUTE}t{text}"
)
Ways = Callable[[str], dict[str, str]]
WAYS: list[Ways] = [
    lambda secret: {"jdbc.url": "jdbc:postgresql://h/l", "jdbc.password": secret},
    lambda secret: {"jdbc.url": f"jdbc:postgresql://h/l?user=me&password={quote(secret, safe='')}"},
    lambda secret: {"jdbc.url": f"jdbc:postgresql://h:99999999/l?password={quote(secret, safe='')}"},
    lambda secret: {"jdbc.url": f"jdbc:postgresql://h/l?pasword={quote(secret, safe='')}"},
    lambda secret: {"jdbc.url": f"jdbc:oracle://h/l?password={secret}"},
    lambda secret: {"jdbc.url": f"jdbc:mysql://me:{quote(secret, safe='')}@h/l"},
    lambda secret: {"jdbc.url": f"mysql://me:{secret}@h/l"},
    lambda secret: {"jdbc.url": f"postgresql://me:{secret}@h:port/l"},
    lambda secret: {"jdbc.url": f"mysql://me:{quote(secret, safe='')}@h/l", "jdbc.password": secret},
    lambda secret: {"jdbc.url": "mysql://h/l", "jdbc.pasword": secret},
    lambda secret: {"jdbc.url": "mysql://h/l", "jdbc.password": secret, "jdbc.database": "a b"},
    lambda secret: {"jdbc.url": "mysql://h/l", "jdbc.password": secret, "jdbc.driver": "none"},
]


@given(SECRET, st.sampled_from(WAYS))
@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_planted_password_is_never_shown(caplog: pytest.LogCaptureFixture, secret: str, way: Ways) -> None:
    caplog.clear()
    texts: list[str] = []
    with caplog.at_level(logging.DEBUG):
        try:
            options = StoreOptions.of(way(secret))
            texts += [repr(options), str(options), repr(options.model_dump()), options.model_dump_json()]
            target = options.target
            texts += [repr(target), str(target), target.words, repr(vars(target)["url"])]
            engine = engine_for(target)
            texts += [repr(engine), str(engine.url), engine.url.render_as_string(hide_password=False)]
        except HeadwaterError as e:
            texts += [str(e), *traceback.format_exception(e)]
    text = "\n".join([*texts, caplog.text])
    assert secret not in text
    assert quote(secret, safe="") not in text
    assert "5ecr" not in text


def test_a_file_s_password_is_not_shown_where_it_can_not_be_read(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_bytes(b"5ecret\xff")
    target = StoreOptions.of({"jdbc.url": "mysql://h/l", "jdbc.password-file": str(file)}).target
    assert target.password is not None
    with pytest.raises(HeadwaterError) as raised:
        target.password()
    assert "5ecret" not in "".join(traceback.format_exception(raised.value))
