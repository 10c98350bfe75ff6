"""Reasoners, prompted and local, and entity taggers."""
