"""qrmem inside of other frameworks."""
