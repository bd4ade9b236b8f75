"""Calls of C functions: their arguments, out values, callbacks, results and failures."""
