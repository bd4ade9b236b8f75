"""From specs and code to an object: wrappers, calling conventions, targets, assembly."""
