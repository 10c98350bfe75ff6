"""Reading segments: with a chat model, by rules, and with taggers."""
