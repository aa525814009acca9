"""The process that sends one notice, started as `python -I -m scheduler_app.actions.notice.sending`.

It reads a JSON object from standard input (see `executor.NoticeExecutor`), and writes `{"outcome", "reason",
"snippet", "status_code"}`. Whatever it runs of others' cannot write there, and it does not outlive its time.
"""

import json
import math
import os
import signal
import sys

from scheduler_app.actions.notice.answer import NoticeAnswer
from scheduler_app.config.sources import conceal_memory


def main() -> None:
    conceal_memory()
    wanted = json.load(sys.stdin)
    # The worker kills it before that, unless it died itself.
    signal.alarm(math.ceil(wanted["seconds"]) + 1)
    answers = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    with open(answers, "w", encoding="utf-8") as told:
        json.dump(send(wanted)._asdict(), told)


def send(wanted: dict[str, object]) -> NoticeAnswer:
    """Sends it; what goes wrong is an answer, too."""
    # Imported here: mail is sent three times as often, and each of the two costs time to import.
    try:
        if wanted["channel"] == "email":
            from scheduler_app.actions.notice.mail import send_mail

            return send_mail(wanted)
        from scheduler_app.actions.notice.services import call_service

        return call_service(wanted)
    except ValueError as error:
        return NoticeAnswer("PERMANENT", f"it cannot be sent as it is stored: {error}"[:300])
    except Exception as error:
        return NoticeAnswer("RETRY", f"{type(error).__name__} while it was sent: {error}"[:300])


if __name__ == "__main__":
    main()
