"""Other methods, to compare with."""
