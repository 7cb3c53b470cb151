"""Judges messages by the official JSON schemas of OpenLineage, and by headwater's own for its facets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from referencing import Registry
from referencing.jsonschema import DRAFT202012

HERE = Path(__file__).parent
OWN = HERE.parents[2] / "docs/openlineage-facets.json"


@cache
def _documents() -> dict[str, dict[str, Any]]:
    files = [*HERE.glob("*.json"), OWN]
    return {document["$id"]: document for file in files for document in [json.loads(file.read_text("utf-8"))]}


@cache
def _validator(reference: str) -> Draft202012Validator:
    resources = [(uri, DRAFT202012.create_resource(document)) for uri, document in _documents().items()]
    registry: Registry[Any] = Registry().with_resources(resources)
    return Draft202012Validator({"$ref": reference}, registry=registry)


def problems_of(message: dict[str, Any]) -> list[str]:
    """What is wrong with a message: in its envelope, or in one of its facets."""
    kind = message["schemaURL"]
    whole = [*_faults(kind, message), *_faults(kind.partition("#")[0], message)]
    return whole + [fault for key, facet in facets_of(message) for fault in _facet_faults(key, facet)]


def _faults(reference: str, value: object) -> list[str]:
    return [f"{error.json_path}: {error.message[:200]}" for error in _validator(reference).iter_errors(value)]


def _facet_faults(key: str, facet: dict[str, Any]) -> Iterator[str]:
    """The schema that a facet names is the one that the spec has for its key, and knows all that is in it."""
    uri, _, fragment = facet["_schemaURL"].partition("#")
    document = _documents()[uri]
    expected = document["properties"][key]
    if {"$ref": f"#{fragment}"} not in [expected, *expected.get("anyOf", [])]:
        yield f"{key} names the schema {facet['_schemaURL']}"
    known = _at(document, fragment)["allOf"][1]["properties"]
    yield from (f"{key} has no {name}" for name in facet.keys() - known.keys() - {"_producer", "_schemaURL"})
    yield from _faults(facet["_schemaURL"], facet)


def _at(document: dict[str, Any], pointer: str) -> dict[str, Any]:
    for part in pointer.strip("/").split("/"):
        document = document[part]
    return document


def facets_of(message: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """All facets of a message, with their keys."""
    for holder in _holders(message):
        for group in ("facets", "inputFacets", "outputFacets"):
            yield from holder.get(group, {}).items()


def _holders(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from (message[name] for name in ("run", "job", "dataset") if name in message)
    yield from message.get("inputs", ())
    yield from message.get("outputs", ())
