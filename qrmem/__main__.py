"""`python -m qrmem`."""

import sys

from qrmem.cli import main

sys.exit(main())
