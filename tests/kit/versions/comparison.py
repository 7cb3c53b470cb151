"""The result of a validation with something of everything in it."""

from __future__ import annotations

from headwater.versions.validation.model import (
    ResultComparison,
    SampleDifference,
    SampleRow,
)


def comparison(**more: object) -> ResultComparison:
    fields: dict[str, object] = {
        "recorded_rows": 3,
        "result_rows": 3,
        "equal": 2,
        "only_recorded": 0,
        "only_result": 0,
        "different": 1,
        "repeated_keys": 1,
        "key": ("id",),
        "columns": (),
        "ignored": ("loaded_at",),
        "is_reordered": True,
        "missing_in_result": ("gone",),
        "missing_in_recorded": (),
        "samples_different": (SampleDifference(key={"id": "<3>"}, columns={"v": ("a", None)}),),
        "samples_only_result": (SampleRow(values={"id": "4"}, count=2),),
    }
    return ResultComparison(**{**fields, **more})  # type: ignore[arg-type]
