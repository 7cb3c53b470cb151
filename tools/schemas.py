"""Writes the Avro schema of each kind's newest version, and enters it in the index of all that were ever released.

A released file is never changed: who changes a model gives its kind the next `schema_version` first.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

from headwater.events.avro.schema import schema_of, version_of
from headwater.events.avro.schema_cache import fingerprint_of
from headwater.events.kinds import KINDS

SCHEMAS = Path(__file__).parent.parent / "events/headwater/events/schemas"


def main() -> int:
    """Exit status 1 if a released schema would have to change."""
    SCHEMAS.mkdir(exist_ok=True)
    index_file = SCHEMAS / "index.json"
    index: dict[str, dict[str, str]] = json.loads(index_file.read_text()) if index_file.exists() else {}
    refused = [message for kind in KINDS.values() if (message := _write(kind.__name__, index))]
    index_file.write_text(json.dumps(dict(sorted(index.items())), indent=1) + "\n")
    for message in refused:
        print(message, file=sys.stderr)
    return 1 if refused else 0


def _write(name: str, index: dict[str, dict[str, str]]) -> str | None:
    kind = KINDS[name]
    schema = schema_of(kind)
    text = json.dumps(schema, indent=1) + "\n"
    file = f"{name}.v{version_of(kind)}.avsc"
    if file in index:
        same = (SCHEMAS / file).read_text() == text
        return None if same else f"{file} is released, and {name} changed: raise its schema_version"
    fingerprint = fingerprint_of(schema).hex()
    if same_form := next((other for other, entry in index.items() if entry["fingerprint"] == fingerprint), None):
        return (
            f"{file} has the fingerprint of {same_form}, so readers can't distinguish them: a version that only means "
            f"something else needs another form too, for example a field with a default"
        )
    (SCHEMAS / file).write_text(text)
    index[file] = {
        "fingerprint": fingerprint,
        "sha256": hashlib.sha256(text.encode()).hexdigest(),
    }
    print(f"wrote {file}")
    return None


if __name__ == "__main__":
    sys.exit(main())
