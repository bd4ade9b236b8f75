"""Work on all cores: an OpenMP runtime that is found at run time, and what is shared among it.

A launch is a number of blocks, `first <= i < last`, and a function that runs some of them.  What
runs all of them is support code (see `ferrule.compiler.support`); it links to no OpenMP runtime.
"""
