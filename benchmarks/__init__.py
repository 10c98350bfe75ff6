"""Measurements, each one command; none of them is part of the tests."""
