"""A memory of conversations: turns, recall, and facts extracted from turns."""
