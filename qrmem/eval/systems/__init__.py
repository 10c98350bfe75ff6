"""Evaluated systems: ours and the baselines, all with the same model, window and reader."""
