"""Branches and loops on run-time values, and the values of names after them."""
