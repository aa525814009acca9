"""The operations on failures, and on the verdict that follows from them."""

from scheduler_app.client import calls
from scheduler_app.client.calls import Call, Listing, path_of, without_none
from scheduler_app.client.methods import listing, operation
from scheduler_app.client.results import Failure, RedriveProgress, SystemVerdict


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

    @operation
    def start_redrive(
        self,
        *,
        cause: str | None = None,
        which: str | None = None,
        when: str | None = None,
        rate: float | None = None,
        schedule_id: str | None = None,
        tag: str | None = None,
        origin: str | None = None,
        all: bool = False,
    ) -> Call[str]:
        """Has beats send dead letters again, and returns the id of the redrive: those of the failure `cause`,
        `which` of them (`all`, `newest_of_each_schedule`, `not_too_late`), `rate` in a second, and `when`:
        `now`, or `receiver_answers`. Raises ValueError unless `cause`, `which` or `when` is given:
        `redrive_many` sends the others."""
        if cause is None and which is None and when is None:
            raise ValueError("give cause, which or when; redrive_many sends dead letters page by page")
        given = {"cause": cause, "which": which, "when": when, "rate": rate, "all": all or None}
        given |= {"schedule_id": schedule_id, "tag": tag, "origin": origin}
        body = without_none(given)
        return calls.post("/api/v1/events/redrive", lambda answer: str(answer["redrive_id"]), body)

    @operation
    def get_redrive(self, redrive_id: str) -> Call[RedriveProgress]:
        """How far a redrive has come."""
        return calls.get(path_of("redrives", redrive_id), RedriveProgress.of)

    @operation
    def stop_redrive(self, redrive_id: str) -> Call[None]:
        """Sends nothing more of it."""
        return calls.delete(path_of("redrives", redrive_id))
