"""``python -m pysimd``."""

import sys

from pysimd.cli.command import main

sys.exit(main())
