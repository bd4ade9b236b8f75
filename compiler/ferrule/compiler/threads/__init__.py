"""Work on all cores: an OpenMP runtime that is found at run time, and the distribution of work.

A launch is a number of blocks, `first <= i < last`, and a function that runs some of them.  Support
code runs all of them (see `ferrule.compiler.support`); it does not link to an OpenMP runtime.
"""
