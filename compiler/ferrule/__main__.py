"""`python -m ferrule`: the command line."""

import sys

try:
    from ferrule.commands import main
except KeyboardInterrupt:
    sys.exit(130)

sys.exit(main())
