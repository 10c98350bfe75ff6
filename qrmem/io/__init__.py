"""Input and output of files: sources, archives, notes, extractions by other programs."""
