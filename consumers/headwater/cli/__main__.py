"""`python -m headwater.cli` is the same as `headwater`."""

from __future__ import annotations

import sys

from headwater.cli.app import main

sys.exit(main())
