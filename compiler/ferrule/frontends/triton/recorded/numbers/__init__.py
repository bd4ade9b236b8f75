"""The kinds of numbers that host functions get while they are recorded."""
