"""Benchmarks: `python -m benchmarks NAME [--json]`. None of them is part of the tests."""
