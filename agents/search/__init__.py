"""The search for an answer: a state machine, its state and its steps."""
