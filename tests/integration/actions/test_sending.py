"""What reaches a receiver, and what comes back."""

import os
import resource
import socket
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from datetime import UTC, datetime

import psutil
import pytest
from standardwebhooks import Webhook

from scheduler_app.actions.http import (
    Guard,
    Response,
    headers_for,
    new_secret,
    parse_networks,
    parse_retry_after,
)
from scheduler_app.actions.http.sender import MAX_UNWATCHED, Sender
from tests.integration.actions.receiver import (
    Receiver,
    Seen,
    first_answers_then,
    hangs,
    says,
    writes,
)
from tests.integration.actions.sending import request, send, send_one
from tests.processes import PATIENCE_SECONDS, wait_until

Receive = Callable[..., Receiver]


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
def test_every_method_carries_its_body(method: str, receive: Receive, sender: Sender) -> None:
    receiver = receive()
    answer = send_one(sender, receiver.url + "?a=1", method=method, body=b"\x00hello\xff")
    assert (answer.status, answer.snippet) == (200, "ok")
    (seen,) = receiver.seen
    assert (seen.method, seen.path, seen.body) == (method, "/hook?a=1", b"\x00hello\xff")


@pytest.mark.parametrize(
    ("method", "length"), [("POST", "0"), ("PUT", "0"), ("PATCH", "0"), ("GET", None), ("DELETE", None)]
)
def test_a_request_without_a_body_says_so_where_one_is_expected(
    method: str, length: str | None, receive: Receive, sender: Sender
) -> None:
    receiver = receive()
    send_one(sender, receiver.url, method=method, body=None)
    assert receiver.seen[0].headers.get("content-length") == length
    assert "content-type" not in receiver.seen[0].headers


def test_the_answer_to_head_has_no_body_and_is_not_waited_for(receive: Receive, sender: Sender) -> None:
    receiver = receive(says("200 OK", body=b"not sent"))
    answer = send_one(sender, receiver.url, method="HEAD", body=None)
    assert (answer.status, answer.snippet, answer.error) == (200, "", None)


def test_what_the_next_request_has_in_common_with_the_last_is_sent_again(
    receive: Receive, sender: Sender
) -> None:
    receiver = receive()
    asked = [
        *[("POST", "/a", b"one")] * 2,
        ("POST", "/b", b"one"),
        ("POST", "/b", b"two"),
        ("PUT", "/b", b"two"),
        *[("PUT", "/b", b"")] * 2,
        *[("HEAD", "/b", b"")] * 2,
        ("GET", "/a", b""),
    ]
    for method, path, body in asked:
        assert send_one(sender, receiver.url + path, method=method, body=body or None).status == 200
    assert [(seen.method, seen.path, seen.body) for seen in receiver.seen] == [
        (method, "/hook" + path, body) for method, path, body in asked
    ]


@pytest.mark.parametrize("most", [MAX_UNWATCHED, 5])
def test_sockets_are_watched_only_by_who_waits_or_has_many(
    most: int, receive: Receive, sender: Sender, resources: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scheduler_app.actions.http.sender.MAX_UNWATCHED", most)
    answers, released = 0, threading.Event()

    def held(seen: Seen, connection: socket.socket) -> bool:
        released.wait()
        return says()(seen, connection)

    receiver = receive(held)
    resources.callback(released.set)
    sender._loop._is_busy = True
    for number in range(6):
        sender.start(request(receiver.url, key=f"event {number}"))
    while len(receiver.seen) < 6:
        answers += len(sender.wait(0))
    # One that libcurl wakes itself by may be among them.
    assert (len(sender._loop._watched) >= 6) == (most < 6)
    answers += len(sender.wait(0.01))
    assert len(sender._loop._watched) >= 6
    released.set()
    while sender.in_flight:
        answers += len(sender.wait(PATIENCE_SECONDS))
    assert answers == 6


def test_nothing_of_one_request_is_left_in_the_next(receive: Receive, sender: Sender) -> None:
    receiver = receive(says("200 OK", body=b"x" * 100))
    secret = (("Authorization", "Bearer a"),)
    for method, body, headers in [
        ("POST", b"first", secret),
        ("GET", None, ()),
        ("HEAD", None, ()),
        ("GET", b"body", ()),
        ("HEAD", None, secret),
        ("DELETE", None, ()),
        ("POST", b"last", ()),
    ]:
        answer = send_one(sender, receiver.url, method=method, body=body, headers=headers)
        assert answer.snippet == ("" if method == "HEAD" else "x" * 100)
    assert [(seen.method, seen.body) for seen in receiver.seen] == [
        ("POST", b"first"),
        ("GET", b""),
        ("HEAD", b""),
        ("GET", b"body"),
        ("HEAD", b""),
        ("DELETE", b""),
        ("POST", b"last"),
    ]
    assert ["authorization" in seen.headers for seen in receiver.seen] == [
        True,
        *[False] * 3,
        True,
        False,
        False,
    ]


def test_libcurl_adds_nothing_that_nobody_asked_for(receive: Receive, sender: Sender) -> None:
    receiver = receive()
    send_one(sender, receiver.url, body=b"x" * 2_000_000)
    assert set(receiver.seen[0].headers) == {"host", "user-agent", "accept", "content-length"}
    assert receiver.seen[0].headers["user-agent"].startswith("RRule-Scheduler/")
    assert len(receiver.seen[0].body) == 2_000_000


def test_headers_arrive_as_they_were_written(receive: Receive, sender: Sender) -> None:
    receiver = receive()
    headers = (
        ("X-Empty", ""),
        ("X-Tab", "a\tb"),
        ("X-Name", "grüße"),
        ("X-Colon", "a: b;"),
        ("Host", "other.test"),
    )
    send_one(sender, receiver.url, headers=headers)
    seen = receiver.seen[0].headers
    assert {name: seen[name.lower()] for name, _ in headers} == dict(headers)


def test_what_is_beyond_ascii_in_a_path_is_percent_encoded(receive: Receive, sender: Sender) -> None:
    receiver = receive()
    send_one(sender, f"http://localhost:{receiver.port}/büro/%C3%A4?q=ü&r=a%20b")
    assert receiver.seen[0].path == "/b%C3%BCro/%C3%A4?q=%C3%BC&r=a%20b"


def test_an_attempt_arrives_signed(receive: Receive, sender: Sender) -> None:
    receiver, secret, now = receive(), new_secret(), datetime.now(UTC)
    headers = headers_for(
        event_id="job-1-20250105T120000Z",
        schedule_id="job",
        run_time=now,
        attempt=3,
        now=now,
        user_headers={"Authorization": "Bearer x"},
        body=b'{"a": 1}',
        signing_secrets=[secret],
    )
    send_one(sender, receiver.url, headers=headers, body=b'{"a": 1}')
    (seen,) = receiver.seen
    assert Webhook(secret).verify(seen.body, seen.headers) == {"a": 1}
    assert seen.headers["idempotency-key"] == seen.headers["webhook-id"] == "job-1-20250105T120000Z"
    assert seen.headers["x-scheduler-attempt"] == "3"
    assert seen.headers["content-type"] == "application/json"
    assert seen.headers["user-agent"].startswith("RRule-Scheduler/")


@pytest.mark.parametrize("status", [201, 204, 304, 400, 401, 404, 408, 429, 500, 503, 599])
def test_every_status_is_an_answer(status: int, receive: Receive, sender: Sender) -> None:
    receiver = receive(says(f"{status} Such", body=b""))
    answer = send_one(sender, receiver.url)
    assert (answer.status, answer.error, answer.permanent) == (status, None, False)


@pytest.mark.parametrize("value", ["3", "Fri, 21 Nov 2036 10:00:00 GMT"])
def test_retry_after_is_handed_on_as_it_came(value: str, receive: Receive, sender: Sender) -> None:
    receiver = receive(says("429 Too Many Requests", f"reTRY-after:  {value} "))
    answer = send_one(sender, receiver.url)
    assert (answer.status, answer.retry_after) == (429, value)
    assert parse_retry_after(value, datetime.now(UTC))


def test_what_an_interim_answer_says_is_not_the_answers(receive: Receive, sender: Sender) -> None:
    early = b"HTTP/1.1 103 Early Hints\r\nRetry-After: 99\r\nLocation: /early\r\n\r\n"
    receiver = receive(writes(early, b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"))
    answer = send_one(sender, receiver.url)
    assert (answer.status, answer.retry_after, answer.location) == (503, None, None)


def test_a_location_is_one_printable_line(receive: Receive, sender: Sender) -> None:
    receiver = receive(says("307 Moved", "Location: http://a/\x1b[31m\tb"))
    answer = send_one(sender, receiver.url)
    assert answer.location == "http://a/ [31m b"
    assert answer.error == "redirect to http://a/ [31m b not followed"


def test_connections_are_kept_between_batches(receive: Receive, sender: Sender) -> None:
    receiver = receive()
    for batch in range(3):
        answers = send(sender, *(request(receiver.url, key=f"{batch}-{number}") for number in range(4)))
        assert {answer.status for answer in answers} == {200}
    assert len(receiver.seen) == 12
    assert receiver.connections <= 4


def test_a_connection_that_the_receiver_closed_meanwhile_is_no_failure(
    receive: Receive, sender: Sender
) -> None:
    closed = threading.Event()

    def once(seen: Seen, connection: socket.socket) -> bool:
        says()(seen, connection)
        connection.shutdown(socket.SHUT_RDWR)
        closed.set()
        return False

    receiver = receive(once)
    for number in range(3):
        assert send_one(sender, receiver.url, key=str(number)).status == 200
        assert closed.wait(PATIENCE_SECONDS)
        closed.clear()
    assert (len(receiver.seen), receiver.connections) == (3, 3)


def test_a_request_that_dies_on_a_kept_connection_is_sent_again(receive: Receive, sender: Sender) -> None:
    # The receiver cannot be told from one whose keep-alive ended just then; the key tells it what it had.
    def drops_the_second(seen: Seen, connection: socket.socket) -> bool:
        return len(receiver.seen) != 2 and says()(seen, connection)

    receiver = receive(drops_the_second)
    key = (("Idempotency-Key", "e"),)
    assert send_one(sender, receiver.url, headers=key).status == 200
    assert send_one(sender, receiver.url, headers=key).status == 200
    assert [(seen.method, seen.connection) for seen in receiver.seen] == [
        ("POST", 1),
        ("POST", 1),
        ("POST", 2),
    ]


def test_a_request_that_dies_on_a_fresh_connection_is_sent_once(receive: Receive, sender: Sender) -> None:
    receiver = receive(writes())
    answer = send_one(sender, receiver.url)
    assert (answer.status, answer.permanent) == (None, False)
    assert answer.error == "the receiver closed the connection without an answer"
    assert len(receiver.seen) == 1


def test_nobody_listening_is_a_passing_failure(sender: Sender) -> None:
    with socket.socket() as deaf:
        # It has a port, which nobody else can take, and does not listen.
        deaf.bind(("127.0.0.1", 0))
        answer = send_one(sender, f"http://127.0.0.1:{deaf.getsockname()[1]}/")
    assert (answer.status, answer.permanent) == (None, False)
    assert answer.error == "could not connect: connection refused"


def test_a_name_that_does_not_exist_is_a_passing_failure(sender: Sender) -> None:
    answer = send_one(sender, "http://nowhere.invalid/")
    assert answer.error is not None
    assert answer.error.startswith("the name was not resolved")
    assert not answer.permanent


def test_a_receiver_that_hangs_delays_nobody(receive: Receive, sender: Sender) -> None:
    hanging, quick = receive(hangs), receive()
    for number in range(5):
        sender.start(request(hanging.url, key=f"hanging-{number}"))
    for number in range(20):
        sender.start(request(quick.url, key=f"quick-{number}"))
    answers: list[Response] = []
    while len(answers) < 20:
        answers += sender.wait(PATIENCE_SECONDS)
    assert {answer.key.split("-")[0] for answer in answers} == {"quick"}
    assert sender.in_flight == 5


def test_waiting_ends_with_its_time_and_costs_nothing(receive: Receive, sender: Sender) -> None:
    receiver = receive(hangs)
    sender.start(request(receiver.url))
    sender.wait(0.05)  # until it is connected
    began, cpu = time.monotonic(), time.thread_time()
    assert sender.wait(0.4) == []
    assert time.monotonic() - began > 0.39
    assert time.thread_time() - cpu < 0.05
    assert sender.in_flight == 1


def test_a_wait_ends_when_another_thread_wakes_it(receive: Receive, sender: Sender) -> None:
    sender.start(request(receive(hangs).url))
    waker = threading.Timer(0.2, sender.wake)
    waker.start()
    # Otherwise it would wait for longer than a test may take.
    assert sender.wait(PATIENCE_SECONDS) == []
    waker.join()


def test_a_wake_before_a_wait_ends_it(sender: Sender) -> None:
    for _ in range(100_000):  # more than its socket holds
        sender.wake()
    # Otherwise it would wait for longer than a test may take.
    assert sender.wait(PATIENCE_SECONDS) == []


def test_hundreds_of_requests_that_wait_cost_almost_no_cpu(
    receive: Receive, sender: Sender, resources: ExitStack
) -> None:
    others = resources.enter_context(closing(Sender(Guard(parse_networks("127.0.0.0/8,::1")))))
    for each, requests in ((sender, 1), (others, 300)):
        hanging = receive(hangs)
        for number in range(requests):
            each.start(request(hanging.url, key=f"hangs-{number}"))
        while each.wait(0.01) or hanging.connections < requests:
            continue
        each.wait(0.5)

    def are_alike() -> bool:
        """The costs of fifty waits beside one and beside hundreds: the least of some measurements, as other
        programs slow down the others. They are made by turns: this machine is not always equally quick."""
        costs = [(_cpu_of_waits(sender, 50), _cpu_of_waits(others, 50)) for _ in range(10)]
        return min(beside for _, beside in costs) < 2 * min(alone for alone, _ in costs)

    # curl_multi_perform, which looks at each of them each time, took several times as much for hundreds,
    # time and again.
    wait_until(are_alike, "waits beside hundreds that cost no more than those beside one")


def _cpu_of_waits(sender: Sender, count: int) -> float:
    began = time.thread_time()
    for _ in range(count):
        sender.wait(0.002)
    return time.thread_time() - began


def test_a_request_that_a_burst_leaves_behind_is_waited_for_without_polling(
    receive: Receive, sender: Sender
) -> None:
    together, asked = threading.Barrier(40), threading.Event()

    def answers_together(seen: Seen, connection: socket.socket) -> bool:
        together.wait(PATIENCE_SECONDS)
        return says()(seen, connection)

    def answers_when_asked(seen: Seen, connection: socket.socket) -> bool:
        asked.wait(PATIENCE_SECONDS)
        return says()(seen, connection)

    burst, slow = receive(answers_together), receive(answers_when_asked)
    for wave in range(3):
        if wave == 2:
            sender.start(request(slow.url, key="slow"))
        for number in range(40):
            sender.start(request(burst.url, key=f"{wave}-{number}"))
        answers: list[Response] = []
        while len(answers) < 40:
            answers += sender.wait(PATIENCE_SECONDS)
    cpu = time.thread_time()
    assert sender.wait(0.4) == []
    assert time.thread_time() - cpu < 0.05
    asked.set()
    (answer,) = sender.wait(PATIENCE_SECONDS)
    assert answer.key == "slow"


def test_an_answer_is_not_kept_waiting(receive: Receive, sender: Sender) -> None:
    receiver = receive()
    send_one(sender, receiver.url)

    def are_quick() -> bool:
        """A fifth of fifty, at least: a machine that has much else to do delays some of them."""
        took = []
        for _ in range(50):
            began = time.perf_counter()
            send_one(sender, receiver.url)
            took.append(time.perf_counter() - began)
        return sorted(took)[10] < 0.005

    # Timers that libcurl rounds up, or a poll in steps, would show in nearly all of them, time and again.
    wait_until(are_quick, "most answers to be noticed at once")


@pytest.mark.parametrize("made", ["before", "after"])
def test_descriptors_above_those_of_select_work_without_a_busy_loop(
    made: str, resources: ExitStack, receive: Receive, sender: Sender
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 2048)), hard))
    resources.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
    quick, hanging = receive(), receive(first_answers_then(hangs))
    with socket.socket() as spare:
        for _ in range(1100):
            resources.callback(os.close, os.dup(spare.fileno()))
    if made == "after":  # libcurl's own descriptor, by which its threads wake it, is then above as well
        sender = resources.enter_context(closing(Sender(Guard(parse_networks("127.0.0.0/8,::1")))))
    assert send_one(sender, quick.url).status == 200
    assert send_one(sender, hanging.url).status == 200
    sender.start(request(hanging.url, timeout_seconds=0.4))
    cpu = time.thread_time()
    (answer,) = sender.wait(PATIENCE_SECONDS)
    assert answer.error == "timed out after 0.4 s"
    assert time.thread_time() - cpu < 0.2


def test_no_descriptor_is_left_behind(sender: Sender) -> None:
    with closing(Receiver(writes(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"))) as receiver:
        send_one(sender, receiver.url)
        before = descriptors(receiver.port)
        for _ in range(20):
            assert send_one(sender, receiver.url).status == 200
        assert receiver.connections == 21
    # Drivers may open or close one between the two looks that make a count.
    wait_until(lambda: descriptors(receiver.port) <= before, "all descriptors to be closed")


def descriptors(port: int) -> int:
    """Without connections to other ports: drivers that other tests have used keep theirs, and open some."""
    connections = psutil.Process().net_connections("inet")
    others = [each for each in connections if port not in {each.laddr[1], *each.raddr[1:]}]
    return len(os.listdir("/dev/fd")) - len(others)


def test_without_descriptors_a_request_fails_for_now(
    resources: ExitStack, receive: Receive, sender: Sender
) -> None:
    receiver = receive()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resources.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
    sender.wait(0)
    with socket.socket() as spare:
        resource.setrlimit(resource.RLIMIT_NOFILE, (spare.fileno(), hard))
    # The lowest free descriptor is now out of bounds; libcurl's own are open already.
    answer = send_one(sender, f"http://127.0.0.1:{receiver.port}/")
    assert answer.error == "no socket could be opened: Too many open files"
    assert (answer.status, answer.permanent) == (None, False)


@pytest.mark.filterwarnings("error")
def test_closing_drops_what_is_in_flight_and_may_be_repeated(receive: Receive) -> None:
    receiver = receive(hangs)
    sender = Sender(Guard(parse_networks("127.0.0.0/8,::1")))
    sender.start(request(receiver.url))
    sender.wait(0.05)
    sender.close()
    sender.close()
    assert sender.in_flight == 0


def test_idle_connections_are_bounded(receive: Receive) -> None:
    receiver = receive()
    with closing(Sender(Guard(parse_networks("127.0.0.0/8,::1")), max_connections=2)) as sender:
        send(sender, *(request(receiver.url, key=str(number)) for number in range(10)))
        for _ in range(10):  # each closes one of those that are too many
            send_one(sender, receiver.url)
        before = receiver.connections
        send(sender, *(request(receiver.url, key=str(number)) for number in range(2)))
        assert receiver.connections == before
        send(sender, *(request(receiver.url, key=str(number)) for number in range(4)))
        assert receiver.connections >= before + 1


@pytest.mark.parametrize("headers", [(), (("Authorization", "Bearer a"),)], ids=["", "credentials"])
def test_receivers_that_are_waited_for_take_no_place_of_idle_connections(
    headers: tuple[tuple[str, str], ...], receive: Receive
) -> None:
    quick, slow = receive(), receive(hangs)
    with closing(Sender(Guard(parse_networks("127.0.0.0/8,::1")), max_connections=2)) as sender:
        for number in range(5):
            sender.start(request(slow.url, key=str(number), headers=headers))
        while len(slow.seen) < 5:
            sender.wait(0.01)
        for _ in range(4):
            sender.start(request(quick.url, key="quick"))
            while not sender.wait(PATIENCE_SECONDS):
                continue
        assert quick.connections == 1


@pytest.mark.parametrize("method", ["TRACE", "CONNECT", "post", "GET /x HTTP/1.1\r\n", ""])
def test_another_method_is_refused(method: str, receive: Receive, sender: Sender) -> None:
    receiver = receive()
    answer = send_one(sender, receiver.url, method=method)
    assert answer.permanent
    assert answer.error is not None
    assert "GET, POST, PUT, PATCH, DELETE, HEAD" in answer.error
    assert receiver.connections == 0


def test_a_connection_is_not_inherited_by_child_processes(receive: Receive, sender: Sender) -> None:
    def inheritable() -> set[int]:
        return {fd for fd in map(int, os.listdir("/dev/fd")) if is_inheritable(fd)}

    before = inheritable()
    sender.start(request(receive(hangs).url))
    sender.wait(0.05)
    assert inheritable() <= before


def is_inheritable(fd: int) -> bool:
    try:
        return os.get_inheritable(fd)
    except OSError:  # the one that listed the others
        return False
