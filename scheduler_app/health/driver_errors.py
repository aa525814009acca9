"""Makes texts of MongoDB's and the broker's drivers fit to be shown: short, and without passwords."""

import re

_SECRET_OPTION = re.compile(r"([?&][^=&\s]*(?:pass|secret|token|propert)[^=&\s]*)=[^&;\s]*", re.IGNORECASE)
_DRIVER_STATE = re.compile(r" \(configured timeouts|, Timeout: |, full error: ")


def without_passwords(text: str) -> str:
    """Returns `text` with every password in its URLs masked: in front of the host, escaped or not, and in
    the query."""
    text = re.sub(r"//([^/@:\s]*):\S*@", r"//\1:***@", text)
    return _SECRET_OPTION.sub(r"\1=***", text)


def error_summary(error: Exception) -> str:
    """Returns the driver's sentence on one line, without its internal state, passwords and final full stop;
    the error's class where it says nothing."""
    text = without_passwords(" ".join(str(error).split())) or type(error).__name__
    return _DRIVER_STATE.split(text)[0].rstrip(".")
