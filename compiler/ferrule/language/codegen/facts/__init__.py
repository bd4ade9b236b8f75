"""What is known of kernels and their launches before they run, found in the kernel IR alone."""
