"""Systems that are evaluated: ours and the baselines, all on the same model, window and reader."""
