"""Nodes: one document a process, written every few seconds, gone a minute after the last."""

import os
import socket
from collections.abc import Mapping
from typing import Any

from scheduler_app.store.mongo import Document, Mongo, new_token

#: A process that has not written for this long is missed, seconds.
MISSED_SECONDS = 15
MOST_NODES = 1_000


class Nodes:
    def __init__(self, mongo: Mongo, settings: Mapping[str, Any]) -> None:
        """`settings`: those of this process on which all must agree, nothing secret."""
        self._nodes = mongo.collection("nodes")
        self.settings = settings
        # Not host and pid alone: after a reboot, or in containers, they come again.
        self._id = f"{socket.gethostname()}-{os.getpid()}-{new_token()[:6]}"

    def report(self, role: str, **facts: Any) -> None:
        """Says that this process lives; `facts` are its version, clock offset, last tick, counters."""
        self._nodes.update_one(
            {"_id": self._id},
            [
                {
                    "$set": {
                        "v": 1,
                        "role": role,
                        "host": socket.gethostname(),
                        "pid": os.getpid(),
                        "seen_at": "$$NOW",
                    }
                    | {"settings": {"$literal": self.settings}}
                    | {name: {"$literal": fact} for name, fact in facts.items()}
                }
            ],
            upsert=True,
        )

    def leave(self) -> None:
        """Says that this process ends."""
        self._nodes.delete_one({"_id": self._id})

    def alive(self) -> list[Document]:
        """The processes that reported lately, by mongod's clock, with their `age_seconds`."""
        oldest = {"$subtract": ["$$NOW", MISSED_SECONDS * 1000]}
        age = {"$divide": [{"$subtract": ["$$NOW", "$seen_at"]}, 1000]}
        found = self._nodes.aggregate(
            [
                {"$match": {"$expr": {"$gt": ["$seen_at", oldest]}}},
                {"$limit": MOST_NODES},
                {"$set": {"age_seconds": age}},
            ]
        )
        return sorted(found, key=lambda node: (node["role"], node["_id"]))
