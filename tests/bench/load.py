"""A light load generator, a process of its own: keep-alive clients on one libcurl multi handle, each of which
asks for the next thing as soon as it has its answer."""

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from io import BytesIO

import pycurl

JSON = ("Content-Type: application/json",)


@dataclass(frozen=True)
class Asked:
    """A request; `body` None sends none."""

    method: str
    url: str
    body: str | None = None


@dataclass(frozen=True)
class Driven:
    """What came of the requests: how many of each status, and the milliseconds of each."""

    seconds: float
    statuses: dict[str, int]
    latency_ms: list[float]
    cpu_s: float

    @property
    def per_second(self) -> int:
        return round(len(self.latency_ms) / self.seconds)


def drive(requests: Sequence[Asked], clients: int, headers: Sequence[str] = JSON) -> Driven:
    """Makes the requests from a process of its own, by so many clients at once."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        rows = [[asked.method, asked.url, asked.body] for asked in requests]
        json.dump({"clients": clients, "headers": list(headers), "requests": rows}, file)
        file.flush()
        command = [sys.executable, "-m", "tests.bench.load", file.name]
        return Driven(**json.loads(subprocess.check_output(command)))


def main(path: str) -> None:
    with open(path) as file:
        order = json.load(file)
    print(json.dumps(asdict(_drive(order["requests"], order["clients"], order["headers"]))))


def _drive(requests: list[list[str | None]], clients: int, headers: list[str]) -> Driven:
    multi = pycurl.CurlMulti()
    waiting = iter(requests)
    statuses: Counter[str] = Counter()
    latency_ms: list[float] = []

    def ask(curl: pycurl.Curl) -> None:
        following = next(waiting, None)
        if following is None:
            return
        method, url, body = following
        curl.setopt(pycurl.URL, url)
        curl.setopt(pycurl.CUSTOMREQUEST, method)
        if body is not None:
            curl.setopt(pycurl.POSTFIELDS, body)
        multi.add_handle(curl)

    curls = [_client(headers) for _ in range(clients)]
    began = time.monotonic()
    for curl in curls:
        ask(curl)
    running = 1
    while running or len(latency_ms) < len(requests):
        _, running = multi.perform()
        _, ended, failed = multi.info_read(clients)
        if failed:
            raise RuntimeError(f"a request failed: {failed[0][2]}")
        for curl in ended:
            statuses[str(curl.getinfo(pycurl.RESPONSE_CODE))] += 1
            latency_ms.append(curl.getinfo(pycurl.TOTAL_TIME) * 1000)
            multi.remove_handle(curl)
            ask(curl)
        if not ended:
            multi.select(1.0)
    seconds = time.monotonic() - began
    used = resource.getrusage(resource.RUSAGE_SELF)
    return Driven(seconds, dict(statuses), latency_ms, used.ru_utime + used.ru_stime)


def _client(headers: list[str]) -> pycurl.Curl:
    curl = pycurl.Curl()
    curl.setopt(pycurl.HTTPHEADER, [*headers, "Expect:"])
    curl.setopt(pycurl.WRITEFUNCTION, BytesIO().write)
    return curl


if __name__ == "__main__":
    main(sys.argv[1])
