"""`compiled.report()`: a page about one compilation, from the source to the machine code.

`collecting` compiles the program once more and gathers what the page shows, `listings` reads the
lines of the source out of LLVM's texts, `checks` tells what a call checks, and `page` writes HTML.
"""
