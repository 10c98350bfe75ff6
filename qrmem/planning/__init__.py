"""What a run would cost, before its first call."""
