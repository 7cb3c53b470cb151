"""Sizes and durations as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from headwater.config import Bytes, Config, Seconds, read_config
from headwater.errors import ConfigurationError


class Limits(Config):
    size: Bytes = Field(default=1 << 30, le=1 << 50)
    wait: Seconds = 30.0


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("1048576", 1 << 20),
        ("10b", 10),
        ("512m", 512 << 20),
        ("512 MB", 512 << 20),
        ("1 GiB", 1 << 30),
        ("1.5g", 3 << 29),
        (" 2 Tib ", 2 << 40),
    ],
)
def test_sizes(text: str, value: int) -> None:
    assert read_config(Limits, {"size": text}).size == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0.0),
        ("5", 5.0),
        ("1.5 s", 1.5),
        ("100 ms", 0.1),
        ("250us", 0.00025),
        ("5min", 300.0),
        ("5m", 300.0),
        ("1 h", 3600.0),
        ("7 Days", 604800.0),
    ],
)
def test_durations(text: str, value: float) -> None:
    assert read_config(Limits, {"wait": text}).wait == value


WRONG = ["", "much", "-1", "1 2", "1e9", "0x10", "nan", "inf", "1 mile", "\u0661", "9" * 30 + "p", "9" * 5_000]


@pytest.mark.parametrize("text", [*WRONG, "0.5", "1 ms"])
def test_what_is_no_size_is_reported_with_examples_and_without_the_value(text: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_config(Limits, {"size": text})
    assert str(caught.value) == "size: write a size, such as 1048576, 512m or 1 GiB (units: b, k, m, g, t, p)"


@pytest.mark.parametrize("text", [*WRONG, "1 kb"])
def test_what_is_no_duration_is_reported_with_examples_and_without_the_value(text: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_config(Limits, {"wait": text})
    assert str(caught.value) == "wait: write a duration, such as 30, 100 ms or 1 h (units: us, ms, s, min, h, d)"


def test_limits_of_a_field_hold() -> None:
    with pytest.raises(ConfigurationError, match="size: Input should be less than or equal to"):
        read_config(Limits, {"size": "2p"})


@given(size=st.integers(0, 1 << 50), wait=st.floats(0, 1e9, allow_subnormal=False))
def test_numbers_are_taken_as_they_are(size: int, wait: float) -> None:
    made = Limits(size=size, wait=wait)
    assert (made.size, made.wait) == (size, wait)
    assert type(made.wait) is float


@pytest.mark.parametrize("value", [True, -1, None, [1]])
def test_what_is_no_number_is_none_in_code_either(value: object) -> None:
    with pytest.raises(ValueError, match="write a size"):
        Limits.model_validate({"size": value})
    with pytest.raises(ValueError, match="write a duration"):
        Limits.model_validate({"wait": value})
