"""Clients of chat and embedding models, and what stands between them and the algorithms.

A chat call goes through ordered layers, each of its own and alone testable:
`Meter` (count) -> `CachedChat` (cache) -> `Negotiation` (parse-and-repair: which output form the
server can do) -> `Retrying` (retry) -> `Limiter` (rate limit) -> `Gauge` (reserve, settle) ->
`OpenAITransport`.
`qrmem.llm.structured.ask` stands above them: a typed reply, or `ModelOutputError`.
"""
