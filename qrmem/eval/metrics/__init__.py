"""Metrics as pure functions over one prediction; each agrees with its official script."""
