"""`Function` and its calls: the heap type, the gate, the slow path, and results."""
