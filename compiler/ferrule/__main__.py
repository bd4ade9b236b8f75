"""`python -m ferrule`: the command line."""

import sys

from ferrule.commands import main

sys.exit(main())
