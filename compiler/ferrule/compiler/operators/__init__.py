"""Compiled functions as operations of frameworks, which trace, differentiate and compile them."""
