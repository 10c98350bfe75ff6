"""How a question is searched for: one state machine, its state and its steps."""
