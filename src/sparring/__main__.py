"""`python -m sparring` is the command `sparring`."""

import sys

from sparring.cli import main

sys.exit(main())
