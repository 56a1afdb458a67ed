"""The tables of `tools/benchmark.py`, a file a table or a group of tables."""
