"""Measurement: the timing loop, data, peaks, tiles, products, the ladder, and verification."""
