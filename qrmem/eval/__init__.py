"""Evaluation: the papers' tasks, systems and baselines on one harness, one command each.

Nothing here is loaded by `import qrmem`, and nothing inside the package imports it.
"""
