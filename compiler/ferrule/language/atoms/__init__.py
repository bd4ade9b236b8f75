"""Atoms: the instructions that copy and multiply tiles, and how threads share a tile with them.

Pure data: an atom says which threads run it together and which values each has, as layouts; a tiled
copy or matrix multiplication repeats an atom over threads and values.  What each method gives
follows from the algebra of `layouts`.
"""
