"""Run-time numbers: what they are made of, computed with and converted to."""
