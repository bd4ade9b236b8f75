"""The verifier of the kernel IR, with its rules for the ops of each area."""
