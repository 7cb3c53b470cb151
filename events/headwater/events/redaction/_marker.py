"""The mark that stands where a secret stood: Spark's own, so that people know it and tools that look for it find it."""

from __future__ import annotations

from typing import Final

REDACTED: Final = "*********(redacted)"
