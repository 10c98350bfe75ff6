"""One module for each program; it runs in that program's own environment.

Such a module imports its program, the standard library and `job`, and nothing else.
"""
