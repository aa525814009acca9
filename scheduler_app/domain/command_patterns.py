"""Which commands a worker may run: the patterns of ALLOWED_COMMANDS."""

import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from scheduler_app.domain.command_action import CommandAction

SHELL = "shell:"
ANYTHING = "*"
MAX_PATTERNS = 200
#: What a `*` inside a word stands for: no folder, and nothing that a shell gives a meaning to.
_PART = r"[A-Za-z0-9._+=@%:,-]+"
#: What a shell gives a meaning to. A line with one of them is more than its words.
_SPECIAL = re.compile(r"[^A-Za-z0-9 ._+=@%:,/\-'\"]")


@dataclass(frozen=True, slots=True)
class Pattern:
    """One pattern: the words of a command, where `*` is one or more words, or a part of one word."""

    text: str
    shell: bool
    words: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> "Pattern":
        """Raises ValueError for text that no command could match."""
        shell = text.startswith(SHELL)
        line = text.removeprefix(SHELL).strip()
        words = tuple(shlex.split(line))
        if not words:
            raise ValueError(f"{text!r} names no command")
        return cls(line, shell, words)

    def allows(self, action: CommandAction) -> bool:
        """Whether the whole of the command matches. A shell's line also matches the same text without
        a `*`."""
        if action.shell != self.shell:
            return False
        if not action.shell:
            return self._matches(action.command)
        line = action.command[0] if action.command else ""
        if self.text == ANYTHING:
            return bool(line.strip())
        if ANYTHING not in self.text and line == self.text:
            return True
        if _SPECIAL.search(line):
            return False
        try:
            return self._matches(shlex.split(line))
        except ValueError:  # a quote that is not closed
            return False

    def _matches(self, command: Sequence[str]) -> bool:
        # The prefixes of the command, by their lengths, that the words of the pattern so far match.
        reached = {0}
        for word in self.words:
            if word == ANYTHING:
                first = min(reached, default=len(command))
                reached = set(range(first + 1, len(command) + 1))
            else:
                reached = {at + 1 for at in reached if at < len(command) and _is_like(word, command[at])}
        return len(command) in reached


def _is_like(pattern: str, word: str) -> bool:
    """Whether a word is what one of a pattern says. `..` would lead out of the folder that it names."""
    if ANYTHING not in pattern:
        return word == pattern
    if ".." in word.split("/"):
        return False
    return re.fullmatch(_PART.join(map(re.escape, pattern.split(ANYTHING))), word) is not None


@dataclass(frozen=True, slots=True)
class AllowedCommands:
    """All patterns of a process; without any, it allows nothing."""

    patterns: tuple[Pattern, ...]

    @classmethod
    def parse(cls, texts: Sequence[str]) -> "AllowedCommands":
        """Raises ValueError."""
        return cls(tuple(Pattern.parse(text) for text in texts))

    def __bool__(self) -> bool:
        return bool(self.patterns)

    def allow(self, action: CommandAction) -> bool:
        return any(pattern.allows(action) for pattern in self.patterns)


def parse_patterns(value: str) -> tuple[str, ...]:
    """The patterns of the setting: a JSON list, or text separated by commas.

    Raises ValueError, which completes a sentence that begins with the setting's name.
    """
    if value.lstrip().startswith("["):
        try:
            texts = json.loads(value)
        except ValueError as error:
            raise ValueError(
                f"must be patterns separated by commas, or a JSON list of them: {error}"
            ) from None
        if not all(isinstance(text, str) for text in texts):
            raise ValueError("must be a list of texts")
    else:
        texts = [text.strip() for text in value.split(",") if text.strip()]
    if len(texts) > MAX_PATTERNS:
        raise ValueError(f"must not have more than {MAX_PATTERNS} patterns")
    try:
        AllowedCommands.parse(texts)
    except ValueError as error:
        raise ValueError(f"must be patterns of commands: {error}") from None
    return tuple(texts)
