"""HTML of what people look at: tables for pages and notebooks, and signatures with their checks.

Nothing here comes from elsewhere: no scripts, fonts or styles of others. What becomes a part of
somebody's page takes its colours from that page, so that it is readable in light and dark.
"""
