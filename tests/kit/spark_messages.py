"""Spark's own messages of errors, as the installed Spark has them, filled with values and secrets."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pyspark

from headwater.events.redaction import REDACTED, mask_message

VALUES: Final = (
    "'QZX QZX'", "'QZX's 'QZX''", '"(a = QZX)"', "987654321", "-98765.4321BD", "DATE '9876-05-04'", "[QZX,QZX]",
)  # fmt: skip
SECRETS: Final = ("password=QZXQZX9876QZ", "'https://joe:QZXQZX9876QZ@h/x'", "'AKIAQZXQZX9876QZ4321'")
_GLUED: Final = re.compile(r"[\w.-]<\w+>")  # table<name>: what is filled in there is no value
_NO_DATA: Final = re.compile(r"<batchMetadataFile>|(?<=batch )<\w+>|(?<=version )<\w+>")


@dataclass
class MaskedMessages:
    """What became of the messages when their parameters were values and secrets."""

    leaks: list[str] = field(default_factory=list[str])
    lost: list[str] = field(default_factory=list[str])
    """Those without their condition, or without what stands at their end."""
    hidden: set[str] = field(default_factory=set[str])
    """Conditions whose message reads like one of a secret, whatever is filled in."""
    count: int = 0


def mask_all_messages() -> MaskedMessages:
    found = MaskedMessages()
    for condition, template in _templates():
        if condition.startswith("_LEGACY") or _GLUED.search(_NO_DATA.sub("7", template)):
            continue
        for value in (*VALUES, *SECRETS):
            filled = re.sub(r"<\w+>", lambda _found, value=value: value, _NO_DATA.sub("7", template))  # type: ignore[misc]
            masked = mask_message(filled)
            found.count += 1
            if re.search(r"QZX|9876|4321", re.sub(r"`[^`]*`", "", masked)):  # backticks hold names
                found.leaks.append(masked)
            if REDACTED in masked and value in VALUES:
                found.hidden.add(condition)
            is_whole = masked.endswith("SQLSTATE: 42000") or REDACTED in masked or not value.isdigit()
            if not masked.startswith(f"[{condition}] ") or not is_whole:
                found.lost.append(masked)
    return found


def _templates() -> Iterator[tuple[str, str]]:
    """Spark's own messages, by their error condition: `<name>` stands where a value goes."""
    (jar,) = (Path(pyspark.__file__).parent / "jars").glob("spark-common-utils_*.jar")
    with zipfile.ZipFile(jar) as files:  # beside the conditions, Spark 4 calls its classes of SQLSTATEs error-classes
        name = max(name for name in files.namelist() if re.search(r"error-(classes|conditions)\.json$", name))
        conditions = json.loads(files.read(name))
    for condition, described in conditions.items():
        text = "\n".join(described["message"])
        yield condition, f"[{condition}] {text} SQLSTATE: 42000"
        for sub, more in described.get("subClass", {}).items():
            yield f"{condition}.{sub}", f"[{condition}.{sub}] {text} {' '.join(more['message'])} SQLSTATE: 42000"
