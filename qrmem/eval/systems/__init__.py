"""Systems by name: ours and the baselines, all on the same model layer, window and reader."""

from qrmem.eval.systems.catalogue import SYSTEMS, System, parse, ranks

__all__ = ["SYSTEMS", "System", "parse", "ranks"]
