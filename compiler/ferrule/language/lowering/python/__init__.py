"""Python's semantics: expressions, statements, calls, comprehensions, classes, operators."""
