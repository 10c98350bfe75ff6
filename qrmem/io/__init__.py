"""Memories in and out of files: archives, extractions made elsewhere."""
