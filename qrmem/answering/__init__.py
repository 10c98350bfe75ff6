"""Answers: with a chat model, or by the passages that come closest."""
