"""Files of code as bytes: ELF and archives, their metadata, trees of imports and digests."""
