"""The flags of the coordinated pipeline."""

from __future__ import annotations

import pytest

from headwater.cli.flags import Flags
from headwater.cli.writer.pipelines import add_pipeline


def parsed(*given: str) -> dict[str, object]:
    parser = Flags("headwater writer run", "")
    add_pipeline(parser)
    return vars(parser.parse_args(given))


def test_plain_is_what_runs_unless_it_is_said() -> None:
    assert parsed() == {
        "lineage_meta": "jdbc",
        "store_option": [],
        "pipeline": "plain",
        "buckets": 4,
        "instant_interval": 0.1,
        "bucket_max_rows": 20_000,
        "buffer_max_bytes": 128 << 20,
        "flush_timeout": 60.0,
    }


def test_times_and_sizes_have_units() -> None:
    parsed_flags = parsed("--pipeline", "coordinated", "--instant-interval", "1.5 s", "--buffer-max-bytes", "1GiB")
    assert (parsed_flags["pipeline"], parsed_flags["instant_interval"], parsed_flags["buffer_max_bytes"]) == (
        "coordinated",
        1.5,
        1 << 30,
    )


@pytest.mark.parametrize(
    ("flag", "value", "words"),
    [
        ("--pipeline", "coordinate", "did you mean 'coordinated'?"),
        ("--instant-interval", "100", "100ms, 2s, 1min"),
        ("--instant-interval", "0s", "100ms, 2s, 1min"),
        ("--buffer-max-bytes", "64MB", "64MiB, 1GiB, 134217728"),
        ("--buffer-max-bytes", "1000", "nothing would fit"),
        ("--buckets", "0", "write 1 or more"),
    ],
)
def test_what_is_wrong_is_reported(flag: str, value: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed(flag, value)
    assert words in capsys.readouterr().err
