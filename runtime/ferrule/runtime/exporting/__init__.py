"""What is written of functions: objects, libraries, headers and stubs."""
