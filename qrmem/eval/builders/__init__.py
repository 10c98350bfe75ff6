"""Builders of the files of data sets from texts: `qrmem eval build KIND`.

Each module here registers its builder with `qrmem.eval.builder`.
"""
