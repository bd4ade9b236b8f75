"""What `--enable-checks` does: checks in the kernel IR, before every access that may go wrong.

`instrument` is the pass.  It inserts a check where `proving` cannot show that it always holds;
`memory` knows what a tensor is a view of, `races` which accesses to shared memory may meet.
"""
