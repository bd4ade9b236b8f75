"""Symbols at the call: reading their values, and checking every place that they stand in."""
