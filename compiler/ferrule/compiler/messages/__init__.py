"""The messages of refused calls: a catalogue, one renderer, and the table in an object.

`catalogue` has all errors and their words; `parts` are the components of a message; `table` packs
the messages of one wrapper into bytes; `support` is the LLVM code, the same in every object, that
makes an error from a row of the table and the arguments of the call.
"""
