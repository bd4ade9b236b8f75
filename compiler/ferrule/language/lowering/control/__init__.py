"""Branches and loops on run-time values, and what names hold after them."""
