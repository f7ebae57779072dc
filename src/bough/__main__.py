"""``python -m bough`` is ``bough``."""

from __future__ import annotations

import sys

from bough.cli import main

sys.exit(main())
