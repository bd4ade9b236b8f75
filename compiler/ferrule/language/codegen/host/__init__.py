"""The host function: what it receives, calls, owns and returns, whatever a target does of launches.

Host functions run on the CPU on every target.
"""
