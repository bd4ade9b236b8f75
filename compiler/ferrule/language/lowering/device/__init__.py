"""What `fe.arch` means: threads, barriers, copies in the background, matrices in tensor cores."""
