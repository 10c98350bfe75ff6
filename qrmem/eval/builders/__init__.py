"""Builders make the files of a data set out of texts: `qrmem eval build KIND`.

Each module here registers its own with `qrmem.eval.builder`.
"""
