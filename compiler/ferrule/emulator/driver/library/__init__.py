"""The shared library that programs take for libcuda: its names, its functions, its file."""
