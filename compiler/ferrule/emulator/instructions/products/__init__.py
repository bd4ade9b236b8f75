"""Products of matrices over a warp or four of them, and how matrices come into registers."""
