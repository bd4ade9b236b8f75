"""Python's own meaning: expressions, statements, calls, comprehensions, classes, operators."""
