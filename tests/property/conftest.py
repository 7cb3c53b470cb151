"""Property tests share one measure of effort: `HYPOTHESIS_PROFILE` is glance, quick or thorough."""

from __future__ import annotations

from tests.property import effort

effort.load()
