"""What a compilation read of Python around the function, and whether it is still the same."""
