"""Launches that were recorded: the tensors and sizes in them, as text, and as one function."""
