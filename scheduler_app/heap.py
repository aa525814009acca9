"""What a process keeps for good, apart from what it makes while it works."""

import gc


def settle_heap() -> None:
    """Takes what has been made so far out of all later garbage collections. To be called once, at the end of
    a process's start.

    Modules, classes and routes are some hundred thousand objects that live as long as the process does. A
    full collection looks at each of them, and all threads wait meanwhile: under load workers stood still for
    0.2 to 0.5 s, every few seconds, and every callback that fell due then was as late.
    """
    gc.collect()
    gc.freeze()
