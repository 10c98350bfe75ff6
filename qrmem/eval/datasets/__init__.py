"""Loaders for the official formats of data sets; an error in a file names the record."""
