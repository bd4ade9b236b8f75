"""The CPU target: launches as loops over blocks and threads, which several cores can run."""
