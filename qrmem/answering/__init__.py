"""Answers: with a chat model, or from the closest passages without one."""
