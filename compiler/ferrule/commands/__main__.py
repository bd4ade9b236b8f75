"""`python -m ferrule.commands`: the command line, as `python -m ferrule`."""

import sys

from ferrule.commands import main

if __name__ == "__main__":
    sys.exit(main())
