"""Passes over the kernel IR that make of a program one that a target can do."""
