"""The HTTP API in OpenAPI's words: each page's JSON with its parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from headwater.web.views import Parameter, View

_ERRORS: Final = ("400", "401", "404", "409", "503", "504")


def describe(views: Sequence[View]) -> dict[str, Any]:
    """Return the description of the API."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "headwater",
            "version": "1",
            "description": "Questions to a lineage store. Numbers of snapshots are texts.",
        },
        "paths": {f"/{view.path}.json": {"get": _operation(view)} for view in views},
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{"token": []}, {}],
    }


def _operation(view: View) -> dict[str, Any]:
    answer = {"description": view.summary, "content": {"application/json": {"schema": {"type": "object"}}}}
    error = {
        "description": "what is wrong, and what to do",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
    }
    return {
        "operationId": view.path.replace("/", "_"),
        "summary": view.summary,
        "parameters": [_parameter(each) for each in view.parameters],
        "responses": {"200": answer, **dict.fromkeys(_ERRORS, error)},
    }


def _parameter(parameter: Parameter) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    if parameter.default is not None:
        schema["default"] = parameter.default
    if parameter.is_repeated:
        schema = {"type": "array", "items": schema}
    return {
        "name": parameter.name,
        "in": "query",
        "required": parameter.is_required,
        "description": parameter.summary,
        "schema": schema,
    }
