"""Autotuned kernels: their configurations, which of them are measured, the measurement."""
