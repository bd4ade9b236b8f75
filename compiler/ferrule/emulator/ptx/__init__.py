"""PTX text as data: `module` has the data, `parser` reads it, `tokens` cuts the text."""
