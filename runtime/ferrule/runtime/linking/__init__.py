"""Machine code in this process: objects and libraries, their symbols, and what frees them."""
