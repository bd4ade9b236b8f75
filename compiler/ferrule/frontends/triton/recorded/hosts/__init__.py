"""Host functions in a recording: what they were given, made and returned."""
