"""The checks of `--enable-checks`: inserted into the kernel IR before every access that may fail.

`instrument` is the pass.  It inserts a check unless `proving` shows that it always holds; `memory`
finds the base tensors of views, `races` the accesses to shared memory that may conflict.
"""
