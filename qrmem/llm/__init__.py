"""Clients of chat and embedding models, and the layers between them and the algorithms.

A chat call passes through four objects, which can be tested separately:

1. `prompting.Caller` makes a request that fits the window, and asks again after a reply that cannot
   be parsed (`structured.ask`).
2. `meter.Meter`, one per run: cache, circuit breaker, usage, recording.
3. `chat_model.Chat`, one per model on a server: output form (`negotiation`), retries and rate
   limits (`retry`), caps of the run (`budget`).
4. `client.Client`: the `openai` client, with limits on time and size.
"""
