"""Measurement: one timing loop, random data, peaks, the speed of tiles, of products and of the ladder."""
