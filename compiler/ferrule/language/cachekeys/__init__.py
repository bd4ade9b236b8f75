"""Keys of compilations: from a function to digests of all that its code can depend on."""
