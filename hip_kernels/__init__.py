"""HIP kernel sources and their table."""
