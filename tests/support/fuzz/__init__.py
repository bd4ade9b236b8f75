"""Random programs, calls and files, for as long as one asks: `make fuzz MINUTES=30`.

A *campaign* (`campaigns.py`) makes the case of a seed, runs it in all ways that there are, and
says what disagrees.  `__main__.py` runs seeds in child processes, so that a crash is a finding
like any other, counts them, and saves a failing case as a file; `python -m fuzz replay FILE` runs
it again.  The property tests of pytest draw from the same generators.
"""
