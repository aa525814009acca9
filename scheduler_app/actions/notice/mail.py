"""Sends one mail by SMTP."""

import re
import smtplib
import ssl
from collections.abc import Mapping
from datetime import datetime
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Any

import certifi

from scheduler_app.actions.notice.answer import NoticeAnswer
from scheduler_app.domain.mail_server import MailSecurity, MailServer
from scheduler_app.domain.masking import one_line

MAX_SUBJECT = 200


def send_mail(wanted: Mapping[str, Any]) -> NoticeAnswer:
    return deliver(
        MailServer.parse(wanted["smtp_url"]),
        wanted["address"],
        mail_of(wanted),
        seconds=wanted["seconds"],
        ca_bundle=wanted["ca_bundle"],
    )


def mail_of(wanted: Mapping[str, Any]) -> EmailMessage:
    """The mail, whose id is the notification's: one that is sent again carries the same."""
    sender = MailServer.parse(wanted["smtp_url"]).sender
    mail = EmailMessage()
    mail["From"] = f"RRule Scheduler <{sender}>"
    mail["To"] = wanted["address"]
    mail["Subject"] = one_line(wanted["subject"])[:MAX_SUBJECT]
    mail["Date"] = format_datetime(datetime.fromisoformat(wanted["now"]))
    mail["Message-ID"] = message_id(wanted["event_id"], sender)
    mail["Auto-Submitted"] = "auto-generated"  # RFC 3834: nobody's absence is answered to it
    mail.set_content(wanted["text"], charset="utf-8", cte="quoted-printable")
    return mail


def message_id(event_id: str, sender: str) -> str:
    """Of the characters that a Message-ID may have without quotes (RFC 5322, dot-atom)."""
    return f"<{re.sub('[^A-Za-z0-9_-]', '.', event_id).strip('.')}@{sender.rpartition('@')[2]}>"


def deliver(
    server: MailServer, address: str, mail: EmailMessage, *, seconds: float, ca_bundle: str = ""
) -> NoticeAnswer:
    """Hands a mail over to the server. `ca_bundle` takes the place of certifi's authorities."""
    try:
        with _connected(server, seconds, ca_bundle) as smtp:
            if server.user:
                smtp.login(server.user, server.password)
            smtp.send_message(mail, server.sender, [address])
            return NoticeAnswer("SUCCESS")
    except smtplib.SMTPRecipientsRefused as error:
        code, said = next(iter(error.recipients.values()))
        return _refused("the address", code, said, is_final=code >= 500)
    except smtplib.SMTPDataError as error:
        return _refused("the mail", error.smtp_code, error.smtp_error, is_final=error.smtp_code >= 500)
    except smtplib.SMTPResponseException as error:
        # Of the sender or the login, which an operator can set right.
        return _refused("this deployment", error.smtp_code, error.smtp_error, is_final=False)
    except smtplib.SMTPNotSupportedError:
        return NoticeAnswer(
            "RETRY", f"{server.host} offers no STARTTLS or no login: take smtps:// in SMTP_URL"
        )
    except ssl.SSLCertVerificationError as error:
        return NoticeAnswer("RETRY", f"the certificate of {server.host} is not valid: {error.verify_message}")
    except (OSError, smtplib.SMTPException) as error:
        return NoticeAnswer("RETRY", f"{server.host} cannot be reached: {error}"[:300])


def _connected(server: MailServer, seconds: float, ca_bundle: str) -> smtplib.SMTP:
    # Its own name would be looked up, which may take as long as a name server does not answer.
    name = server.sender.rpartition("@")[2]
    where = (server.host, server.port, name)
    if server.security is MailSecurity.TLS:
        context = ssl.create_default_context(cafile=ca_bundle or certifi.where())
        return smtplib.SMTP_SSL(*where, timeout=seconds, context=context)
    smtp = smtplib.SMTP(*where, timeout=seconds)
    if server.security is MailSecurity.STARTTLS:
        try:
            smtp.starttls(context=ssl.create_default_context(cafile=ca_bundle or certifi.where()))
        except BaseException:
            smtp.close()
            raise
    return smtp


def _refused(what: str, code: int, said: bytes | str, *, is_final: bool) -> NoticeAnswer:
    snippet = said.decode(errors="replace") if isinstance(said, bytes) else said
    reason = f"the mail server refuses {what} with {code}"
    return NoticeAnswer("PERMANENT" if is_final else "RETRY", reason, snippet[:1000], code)
