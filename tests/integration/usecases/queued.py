"""What lies in the queue of a real Redis."""

import base64
import json
from typing import Any

from redis import Redis

from tests import broker_queue


def messages(redis_url: str) -> list[dict[str, Any]]:
    """Each message's keywords, eta and priority, as workers will take them; Redis is the test's own."""
    with Redis.from_url(redis_url, decode_responses=True) as client:
        found = []
        for key in broker_queue.lists(client):
            for raw in reversed(client.lrange(key, 0, -1)):
                message = json.loads(raw)
                _, keywords, _ = json.loads(base64.b64decode(message["body"]))
                headers, properties = message["headers"], message["properties"]
                found.append({**keywords, "eta": headers["eta"], "priority": properties["priority"]})
        return found
