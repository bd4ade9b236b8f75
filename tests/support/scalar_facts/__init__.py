"""Facts of operators against what the operators mean, and facts made wrong on purpose."""
