"""Functions of a kernel's arguments that are traced: grids, heuristics, hooks."""
