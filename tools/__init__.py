"""Scripts for maintainers: `python -m tools.NAME`. They fit weights and write tables."""
