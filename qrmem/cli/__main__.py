"""`python -m qrmem.cli`."""

import sys

from qrmem.cli import main

sys.exit(main())
