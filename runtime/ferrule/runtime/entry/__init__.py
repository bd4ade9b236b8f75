"""The direct entry: the C function that Python calls, generated for the kinds of the parameters.

It reads each argument straight into a `TVMFFIAny` on the stack and calls the wrapper through the
packed ABI. One entry for each key (`EntryKey`) is kept for the process; names, defaults and the
address of the wrapper are the callable's own. Whatever an entry does not read, it hands to the
gate before anything has run.

`readers` says what can be read, `surroundings` what this process has, `tensors`, `values` and
`code` generate, `support` holds what all entries share, `entries` keeps them.
"""
