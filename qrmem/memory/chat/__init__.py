"""A memory of conversations: turns, what is recalled of them, and facts drawn from them."""
