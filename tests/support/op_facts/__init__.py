"""Facts of ops against what the ops are seen to do, and facts that are made wrong on purpose."""
