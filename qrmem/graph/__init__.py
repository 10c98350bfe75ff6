"""The papers' algorithms as functions over records and protocols, without I/O of their own."""
