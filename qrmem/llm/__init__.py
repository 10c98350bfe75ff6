"""Clients of chat and embedding models, and what stands between them and the algorithms.

A chat call passes four objects, each of its own and alone testable:

1. `prompting.Caller` makes a request that fits the window, and asks again for a reply that cannot
   be read (`structured.ask`).
2. `meter.Meter`, one of a run: the cache, the breaker, the account, the recording.
3. `chat.Chat`, one of a model on a server: the output form that it takes (`negotiation`), tries and
   rates (`retry`), the caps of the run (`budget`).
4. `client.Client`: the `openai` client, bounded in time and size.
"""
