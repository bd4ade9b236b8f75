"""The messages of refused calls: a catalogue, one renderer, and the table that an object carries.

`catalogue` says what can be wrong and in which words; `parts` are what a message is made of;
`table` packs the messages of one wrapper into bytes; `support` is the LLVM code, the same in every
object, that turns a row of the table and the arguments of the call into an error.
"""
