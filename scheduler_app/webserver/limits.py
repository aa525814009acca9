"""What one client may ask of the web server. Sizes are in bytes, times in seconds, for each process."""

#: A request line is at most 8,190 bytes, a header field too, and there are at most 100 of them: those are
#: gunicorn's settings. GroupCommit they are at most this.
MAX_HEADER_BYTES = 64 * 1024

MAX_BODY_BYTES = 1024 * 1024
#: By path; a thousand schedules are more than one.
LARGER_BODIES = {"/api/schedules/bulk": 16 * 1024 * 1024}

#: Each chunk of a chunked body costs time that its size does not show.
MAX_CHUNKS = 100_000
MAX_CHUNK_LINE_BYTES = 256
MAX_TRAILER_BYTES = 8 * 1024

#: A body, and an answer, must progress at this pace, measured over API_SLOW_CLIENT_SECONDS.
MIN_BYTES_PER_SECOND = 8 * 1024
#: A body must be complete by then, at whatever pace.
MAX_BODY_SECONDS = 120.0

#: An application that writes an answer piece by piece rests while so much of it waits for its reader.
PENDING_ANSWER_BYTES = 256 * 1024
#: Bodies and answers in memory, of all connections together; a single one may be larger.
MAX_BUFFERED_BYTES = 64 * 1024 * 1024

#: After an error, what the client still sends is read and dropped, or it would never see the answer.
LINGER_SECONDS = 2.0
#: A stopping process waits so long for a request that a kept-alive client may be sending already.
STOPPING_IDLE_SECONDS = 1.0


def max_body_bytes(path: str) -> int:
    """How large the body of a request for `path` may be."""
    return LARGER_BODIES.get(path, MAX_BODY_BYTES)
