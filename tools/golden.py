"""Writes the golden file of each kind's newest version where there is none yet. Golden files are never changed."""

from __future__ import annotations

import json
from pathlib import Path

from headwater.events.avro import Codec
from headwater.events.avro.schema import version_of
from headwater.testing.examples import EXAMPLES

GOLDEN = Path(__file__).parent.parent / "tests/golden"


def main() -> None:
    """The bytes of the examples, and the same events as JSON."""
    for kind in {type(event) for event in EXAMPLES}:
        file = GOLDEN / f"{kind.__name__}.v{version_of(kind)}.json"
        if file.exists():
            continue
        of_kind = [event for event in EXAMPLES if type(event) is kind]
        content = [{"bytes": Codec().encode(e).hex(), "event": e.model_dump(mode="json")} for e in of_kind]
        file.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(f"wrote {file.name}")


if __name__ == "__main__":
    main()
