"""The operations on failures, and on the verdict that follows from them."""

from scheduler_app.client import calls
from scheduler_app.client.calls import Call, Listing, path_of, without_none
from scheduler_app.client.methods import listing, operation
from scheduler_app.client.results import Failure, SystemVerdict


class FailureOperations:
    """What fails, and whether all is well."""

    @operation
    def status(self) -> Call[SystemVerdict]:
        """Whether all is well, and if not, since when, why and what to do."""
        return calls.get("/api/v1/status", SystemVerdict.of)

    @listing
    def failures(
        self,
        *,
        state: str | None = None,
        tag: str | None = None,
        destination: str | None = None,
        origin: str | None = None,
    ) -> Listing[Failure]:
        """Yields the failures matching every given filter, those that began last first. `state` is `open`,
        `over` or `dismissed`, or several: "open,over"."""
        which = {"state": state, "tag": tag, "destination": destination, "origin": origin}
        return Listing("/api/v1/failures", "failures", Failure.of, which)

    @operation
    def failure(self, failure_id: str) -> Call[Failure]:
        """Returns a failure with its newest events."""
        return calls.get(path_of("failures", failure_id), Failure.of)

    @operation
    def dismiss_failure(
        self, failure_id: str, *, note: str | None = None, events: bool = False
    ) -> Call[Failure]:
        """Takes a failure out of the verdict; with `events` its dead letters are expired, too, up to 5,000 in
        a call: `more` says whether to call again."""
        body = without_none({"note": note, "events": events or None})
        return calls.post(path_of("failures", failure_id, "dismiss"), Failure.of, body)
