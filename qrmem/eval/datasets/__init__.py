"""Loaders for the official forms of data sets; what is wrong with a file names the record."""
