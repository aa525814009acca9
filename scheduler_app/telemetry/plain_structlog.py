"""structlog without rich.

structlog imports rich where it is installed, for tracebacks that show local variables. Those may hold
secrets, so nothing here prints them. rich brings Pygments and attrs along, and together they would be a
twentieth of the start of every process. The command line, which shows tables by it, imports rich itself.
"""

import sys
from typing import Any, cast

_modules = cast("dict[str, Any]", sys.modules)
_hidden = "rich" not in _modules
if _hidden:
    _modules["rich"] = None  # `import rich` raises ImportError, which structlog expects
try:
    import structlog
finally:
    if _hidden:
        del _modules["rich"]

__all__ = ["structlog"]
