"""Device code of other compilers: cubins and PTX are read, checked and joined."""
