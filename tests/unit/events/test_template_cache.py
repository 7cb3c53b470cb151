"""What two events have in common is followed byte by byte; what varies is read."""

from __future__ import annotations

from uuid import UUID

import pytest

from headwater.events import Committed, DatasetId, Input, JobName, Output
from headwater.events.avro import Codec
from headwater.events.avro.template_cache import Template, TemplateCache

VARYING = ("producer", "sequence", "snapshot", "version", "rows")
LAST = 2**63 - 1


def commit(number: int, *, job: str = "etl", rows: int | None = 7, version: str | None = None) -> Committed:
    source = Input(dataset=DatasetId(namespace="s3://lake", name="raw"), snapshot=number, version=version)
    output = Output(dataset=DatasetId(namespace="s3://lake", name="daily"), snapshot=-number, rows=rows)
    places = {"inputs": (source,), "outputs": (output,)}
    return Committed(producer=UUID(int=number), sequence=number, job=JobName(name=job), barrier=1, **places)


def encoded(event: Committed) -> bytes:
    return Codec().encode(event)


def learned(event: Committed) -> tuple[TemplateCache[str], Template]:
    templates: TemplateCache[str] = TemplateCache("Committed", VARYING)
    where, node = templates.learn(encoded(event))
    templates.keep(node, "known")
    return templates, where


@pytest.mark.parametrize("number", [1, 2, 63, 64, 2**31, LAST])
def test_values_are_read_where_they_stand(number: int) -> None:
    templates, where = learned(commit(5))
    fit = templates.match(encoded(commit(number)))
    assert fit is not None
    assert fit.value == "known"
    values = {name: fit.values[where.places[name]] for name in where.places}
    assert values == {
        ("producer",): UUID(int=number).bytes,
        ("sequence",): number,
        ("inputs", 0, "snapshot"): number,
        ("outputs", 0, "snapshot"): -number,
        ("outputs", 0, "rows"): 7,
    }
    assert ("inputs", 0, "version") not in where.places


@pytest.mark.parametrize(
    "other",
    [
        commit(5, job="etm"),
        commit(5, job="etl2"),
        commit(5, rows=None),
        commit(5, version="7"),
        commit(5).model_copy(update={"barrier": 2}),
        commit(5).model_copy(update={"inputs": ()}),
    ],
)
def test_whatever_else_differs_is_another_mould(other: Committed) -> None:
    templates, _ = learned(commit(5))
    assert templates.match(encoded(other)) is None
    _, node = templates.learn(encoded(other))
    templates.keep(node, "other")
    assert [getattr(templates.match(encoded(each)), "value", None) for each in (commit(9), other)] == ["known", "other"]
    assert len(templates) == 2


def test_texts_vary_too() -> None:
    templates, where = learned(commit(5, version="7"))
    fit = templates.match(encoded(commit(5, version="20261122é")))
    assert fit is not None
    assert fit.values[where.places["inputs", 0, "version"]] == "20261122é"


def test_bytes_that_are_cut_or_too_many_fit_nothing() -> None:
    data = encoded(commit(LAST))
    templates, _ = learned(commit(LAST))
    assert [size for size in range(len(data)) if templates.match(data[:size]) is not None] == []
    assert templates.match(data + b"\0") is None


def test_what_is_no_number_of_64_bits_and_no_text_fits_nothing() -> None:
    event = commit(1, version="éé")
    data, (templates, _) = encoded(event), learned(event)
    assert templates.match(data.replace("éé".encode(), b"\xc3\xa9\xc3\xc3")) is None
    at = data.index(UUID(int=1).bytes) + 16  # where the sequence stands
    longest = b"\xff" * 9
    assert templates.match(data[:at] + longest + b"\x01" + data[at + 1 :]) is not None
    assert templates.match(data[:at] + longest + b"\x02" + data[at + 1 :]) is None
    assert templates.match(data[:at] + longest + b"\x80\x01" + data[at + 1 :]) is None


def test_all_can_be_forgotten() -> None:
    templates, _ = learned(commit(5))
    templates.clear()
    assert (len(templates), templates.match(encoded(commit(5)))) == (0, None)
