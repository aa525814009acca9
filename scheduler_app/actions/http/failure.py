"""What libcurl reports, in sentences for the person whose callback failed."""

import os

import pycurl

CONNECT_SECONDS = 5.0

_CLOSED = "the receiver closed the connection before the answer was complete"
_SENTENCES = {
    pycurl.E_GOT_NOTHING: "the receiver closed the connection without an answer",
    pycurl.E_PARTIAL_FILE: _CLOSED,
    pycurl.E_RECV_ERROR: _CLOSED,
    pycurl.E_SEND_ERROR: "the receiver closed the connection while the request was sent",
    100: "the answer's headers are too large",  # CURLE_TOO_LARGE, which pycurl does not name
}
# libcurl's own words are good where they tell what was wrong with the other side.
_NOT_HTTP = "the answer is not HTTP/1.1"
_PREFIXES = {
    pycurl.E_COULDNT_RESOLVE_HOST: "the name was not resolved",
    pycurl.E_COULDNT_CONNECT: "could not connect",
    pycurl.E_SSL_CONNECT_ERROR: "TLS failed",
    pycurl.E_PEER_FAILED_VERIFICATION: "the certificate is not accepted",
    # Not our URL's scheme, which was checked before: an answer without a status line, taken for HTTP/0.9.
    pycurl.E_UNSUPPORTED_PROTOCOL: _NOT_HTTP,
    pycurl.E_FTP_WEIRD_SERVER_REPLY: _NOT_HTTP,
}


def sentence(code: int, message: str, os_errno: int) -> str:
    """The sentence for a CURLcode other than a timeout; `message` is libcurl's, `os_errno` may be 0."""
    if code == pycurl.E_COULDNT_CONNECT and os_errno:
        message = os.strerror(os_errno).lower()
    elif code == pycurl.E_RECV_ERROR and "response headers" in message:
        return _SENTENCES[100]
    elif code in _SENTENCES:
        return _SENTENCES[code]
    message = message or f"curl's error {code}"
    prefix = _PREFIXES.get(code)
    return f"{prefix}: {message}" if prefix else message


def timed_out(connected: bool, timeout_seconds: float) -> str:
    """The sentence for a timeout: it names the limit that was met."""
    if connected:
        return f"timed out after {timeout_seconds:g} s"
    return f"timed out: no connection within {min(timeout_seconds, CONNECT_SECONDS):g} s"
