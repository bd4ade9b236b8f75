"""Passes over the kernel IR that transform a program into one that a target supports."""
