"""Lowerings of the kernel IR.  Each takes a verified program; today there is one, for the CPU."""
