"""Receiving callbacks with Django.

>>> @receives(receiver)
... def nightly(request, delivery):
...     print(delivery.json())
>>> urlpatterns = [path("nightly", nightly)]
"""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import wraps
from typing import Any

from django.core.exceptions import RequestDataTooBig
from django.db.transaction import non_atomic_requests
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.views.decorators.csrf import csrf_exempt

from scheduler_app.receiver.receiver import Answer, Delivery, Receiver

View = Callable[..., HttpResponseBase]


def receives(receiver: Receiver) -> Callable[[Callable[..., HttpResponseBase | None]], View]:
    """Makes a view of a function of the request, the delivery, and what the URL holds.

    It returns what any view does, or None for a 204. Its event is done unless it raises or answers with a
    status of 400 or more. Django's check of cross-site requests is off for it: the signature takes its place.
    So is ATOMIC_REQUESTS, by which a key would be remembered before the work is committed: use `atomic` in
    the function.
    """

    def decorate(view: Callable[..., HttpResponseBase | None]) -> View:
        @wraps(view)
        def received(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            def work(delivery: Delivery) -> HttpResponseBase:
                result = view(request, delivery, *args, **kwargs)
                return _response(Answer(204)) if result is None else result

            if int(request.META.get("CONTENT_LENGTH") or 0) > receiver.max_body_bytes:
                return _response(receiver.too_large())
            try:
                body = request.body
            except RequestDataTooBig:
                # DATA_UPLOAD_MAX_MEMORY_SIZE may be less than what this receiver allows.
                return _response(receiver.too_large())
            result = receiver.handle(
                request.headers,
                body,
                work,
                now=datetime.now(UTC),
                is_success=lambda response: response.status_code < 400,
            )
            return _response(result) if isinstance(result, Answer) else result

        made: View = csrf_exempt(non_atomic_requests(received))
        return made

    return decorate


def _response(answer: Answer) -> HttpResponse:
    return HttpResponse(answer.body, status=answer.status, content_type="text/plain")
