"""A password that is planted anywhere in a store's options shows in no words: of options, engines, errors, logs."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headwater.errors import HeadwaterError
from headwater.lineage.store.engines import engine_for
from headwater.lineage.store.options import StoreOptions
from tests.kit.effort import examples

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
