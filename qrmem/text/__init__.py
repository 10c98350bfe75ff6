"""Normalising, words, sentences, names, tokens, files: what every layer above may use."""
