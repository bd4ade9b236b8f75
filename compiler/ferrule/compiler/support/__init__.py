"""Support code: cold functions, the same in every object that calls one of them.

`library` knows all of it and gives an object what it needs.  Here is what bodies and wrappers call
beside the checker, the messages, the launches of CUDA and the threads, which have folders of their
own; and how precompiled code is taken apart (`precompiled`) and laid into an object (`placement`).
"""
