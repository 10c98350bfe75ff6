"""An OpenAI-compatible chat server that calls the first tool once, then says what the tool said."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any

from servers.loopback import served


@contextmanager
def serving(query: str) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the base URL, and the requests as they come; the tool is called with `query`."""
    requests: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["content-length"])
            requests.append(json.loads(self.rfile.read(length)))
            body = json.dumps(_reply(requests[-1], query)).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with served(Handler) as address:
        yield f"{address}/v1", requests


def _reply(request: Mapping[str, Any], query: str) -> dict[str, Any]:
    said = [message for message in request["messages"] if message["role"] == "tool"]
    message: dict[str, Any]
    if said:
        message = {"role": "assistant", "content": f"It says: {said[-1]['content']}"}
    else:
        called = {
            "name": request["tools"][0]["function"]["name"],
            "arguments": json.dumps({"query": query}),
        }
        call = {"id": "call-1", "type": "function", "function": called}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
    choice = {
        "index": 0,
        "message": message,
        "finish_reason": "stop" if said else "tool_calls",
    }
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": request["model"],
        "choices": [choice],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }
