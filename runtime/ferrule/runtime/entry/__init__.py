"""The direct entry: the C function that Python calls, generated for the kinds of the parameters.

It reads each argument directly into a `TVMFFIAny` on the stack and calls the wrapper through the
packed ABI. The process keeps one entry for each key (`EntryKey`), which several functions share;
each callable has its own names, defaults and address of the wrapper. If an entry cannot read an
argument, it hands the call to the gate before any other code has run.

`readers` defines the readable forms of values, and `surroundings` finds the types and layouts of
this process. `tensors`, `values` and `code` generate entries, `support` has the functions that all
entries share, and `entries` keeps the entries of the process.
"""
