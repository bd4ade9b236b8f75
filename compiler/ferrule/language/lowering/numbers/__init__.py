"""Run-time numbers: construction, arithmetic and conversion."""
