"""Asynchronous copies, the stores and barriers that go with them."""
