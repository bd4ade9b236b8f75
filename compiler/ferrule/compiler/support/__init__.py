"""Support code: cold functions, the same in every object that calls one of them.

`library` has all of it and gives an object the parts that it needs.  This folder has the functions
for bodies and wrappers; the checker, the messages, CUDA launches and threads have folders of their
own.  `precompiled` takes compiled support code apart, and `placement` lays it into an object.
"""
