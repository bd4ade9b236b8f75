"""The host function: parameters, calls, owned objects and results, independent of the target's
launches.

Host functions run on the CPU on every target.
"""
