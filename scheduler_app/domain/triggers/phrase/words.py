"""The vocabulary of the grammar: which English words it knows, and what each stands for."""

from typing import Final

WEEKDAYS: Final = {
    name: number
    for number, names in enumerate(
        (
            *("monday mon mo", "tuesday tues tue", "wednesday weds wed", "thursday thurs thur thu"),
            *("friday fri", "saturday sat", "sunday sun"),
        )
    )
    for name in names.split()
}
#: "mondays" repeats; "monday" is one day unless something else in the phrase repeats.
PLURAL_WEEKDAYS: Final = {f"{name}s": number for name, number in WEEKDAYS.items() if len(name) > 2}

MONTHS: Final = {
    name: number
    for number, names in enumerate(
        (
            *("january jan", "february feb", "march mar", "april apr", "may", "june jun"),
            *("july jul", "august aug", "september sept sep", "october oct", "november nov", "december dec"),
        ),
        1,
    )
    for name in names.split()
}

#: Feasts of a fixed date, by their names: the month and the day. Of two that begin alike the longer is first.
FEASTS: Final = {
    "christmas eve": (12, 24),
    "christmas day": (12, 25),
    "christmas": (12, 25),
    "boxing day": (12, 26),
    "new year's eve": (12, 31),
    "new years eve": (12, 31),
    "new year's day": (1, 1),
    "new years day": (1, 1),
    "epiphany": (1, 6),
    "valentine's day": (2, 14),
    "valentines day": (2, 14),
    "halloween": (10, 31),
    "all saints' day": (11, 1),
}

#: Feasts that move with Easter Sunday, by the days after it. Of two that begin alike the longer is first.
EASTER_FEASTS: Final = {
    "shrove tuesday": -47,
    "ash wednesday": -46,
    "palm sunday": -7,
    "maundy thursday": -3,
    "good friday": -2,
    "easter sunday": 0,
    "easter monday": 1,
    "easter": 0,
    "ascension day": 39,
    "whit sunday": 49,
    "whit monday": 50,
    "pentecost monday": 50,
    "pentecost": 49,
    "corpus christi": 60,
}

_UNITS: Final = {
    "second": "seconds sec secs s",
    "minute": "minutes min mins m",
    "hour": "hours hr hrs h",
    "day": "days d",
    "week": "weeks wk wks w",
    "month": "months mth mths",
    "quarter": "quarters qtr",
    "year": "years yr yrs y",
}
UNITS: Final = {word: unit for unit, words in _UNITS.items() for word in (unit, *words.split())}
SECONDS_OF: Final = {"second": 1, "minute": 60, "hour": 3_600}
DAYS_OF: Final = {"day": 1, "week": 7}
MONTHS_OF: Final = {"month": 1, "quarter": 3, "year": 12}

_SMALL: Final = tuple(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "  # noqa: SIM905
    "seventeen eighteen nineteen".split()
)
_TENS: Final = {"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "ninety": 90}
_SMALL_ORDINALS: Final = tuple(
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth "  # noqa: SIM905
    "fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth".split()
)
NUMBERS: Final = {
    **{word: number for number, word in enumerate(_SMALL)},
    **_TENS,
    **{f"{ten} {_SMALL[one]}": _TENS[ten] + one for ten in _TENS for one in range(1, 10)},
}
ORDINALS: Final = {
    **{word: number for number, word in enumerate(_SMALL_ORDINALS, 1)},
    "thirtieth": 30,
    **{
        f"{ten} {_SMALL_ORDINALS[one]}": _TENS[ten] + one + 1
        for ten in ("twenty", "thirty")
        for one in range(9)
    },
}

#: Adverbs that say how often: a number of units.
ADVERBS: Final = {
    "daily": (1, "day"),
    "everyday": (1, "day"),
    "hourly": (1, "hour"),
    "weekly": (1, "week"),
    "fortnightly": (2, "week"),
    "monthly": (1, "month"),
    "quarterly": (1, "quarter"),
    "yearly": (1, "year"),
    "annually": (1, "year"),
}
#: Adverbs that have two meanings: every two of them, or twice in one.
DOUBTFUL_ADVERBS: Final = {
    "biweekly": (2, "week"),
    "bimonthly": (2, "month"),
    "biannually": (2, "year"),
    "biennially": (2, "year"),
}

PARTS_OF_DAY: Final = ("morning", "afternoon", "evening", "night")

EVERY: Final = frozenset({"every", "each", "all"})
AND: Final = frozenset({",", "and", "&", ";"})
TO: Final = frozenset({"to", "-", "through", "thru", "till", "until", "til"})
STARTING: Final = frozenset(
    {"starting", "start", "starts", "beginning", "begin", "begins", "from", "effective"}
)
UNTIL: Final = frozenset({"until", "till", "til", "through", "thru", "ending", "ends"})
EXCEPT: Final = frozenset({"except", "excluding", "but", "without", "excepting", "not"})

#: What may stand in front of a phrase and says nothing of when; of two that begin alike the longer is first.
POLITE: Final = (
    "please",
    "kindly",
    *(f"{verb} you" for verb in ("can", "could", "would", "will")),
    *(f"i {wish}{whom} to" for wish in ("want", "need", "would like") for whom in (" you", " it", "")),
    *(f"i'd like{whom} to" for whom in (" you", " it", "")),
    "let's",
    "let us",
    "make sure to",
    "be sure to",
    "remember to",
    "it should",
    "this should",
)
VERBS: Final = (
    *(f"{verb} me{more}" for verb in ("remind", "tell") for more in (" to run it", " to", "")),
    *(f"{verb} me" for verb in ("notify", "alert", "ping", "call", "email", "text", "message")),
    "wake me up",
    "wake me",
    *(f"{subject} {verb}" for subject in ("it", "this") for verb in ("runs", "fires", "happens")),
    "set it to run",
    "have it run",
    "make it run",
    "start it",
    *("do", "run", "runs", "execute", "trigger", "fire", "fires", "repeat", "repeats"),
    *("call", "send", "schedule"),
)
_DONE: Final = ("job", "task", "callback", "webhook", "url", "endpoint", "command", "schedule", "reminder")
DONE_TO: Final = (
    "it",
    "this",
    "that",
    *(f"{article} {what}" for article in ("the", "this", "my", "a") for what in _DONE),
)
THANKS: Final = ("please", "thanks", "thank you")

#: Letters that name a zone, with every zone that people mean by them: with summer time, or of a fixed offset.
ZONES_BY_LETTERS: Final[dict[str, tuple[str, ...]]] = {
    "utc": ("UTC",),
    "gmt": ("UTC",),
    "et": ("America/New_York",),
    "ct": ("America/Chicago",),
    "mt": ("America/Denver",),
    "pt": ("America/Los_Angeles",),
    "est": ("America/New_York", "Etc/GMT+5"),
    "edt": ("America/New_York", "Etc/GMT+4"),
    "cst": ("America/Chicago", "Etc/GMT+6", "Asia/Shanghai"),
    "cdt": ("America/Chicago", "Etc/GMT+5"),
    "mst": ("America/Denver", "America/Phoenix"),
    "mdt": ("America/Denver", "Etc/GMT+6"),
    "pst": ("America/Los_Angeles", "Etc/GMT+8"),
    "pdt": ("America/Los_Angeles", "Etc/GMT+7"),
    "wet": ("Europe/Lisbon", "UTC"),
    "cet": ("Europe/Berlin", "Etc/GMT-1"),
    "cest": ("Europe/Berlin", "Etc/GMT-2"),
    "eet": ("Europe/Athens", "Etc/GMT-2"),
    "eest": ("Europe/Athens", "Etc/GMT-3"),
    "bst": ("Europe/London", "Etc/GMT-1", "Asia/Dhaka"),
    "msk": ("Europe/Moscow",),
    "ist": ("Asia/Kolkata", "Europe/Dublin", "Asia/Jerusalem"),
    "jst": ("Asia/Tokyo",),
    "kst": ("Asia/Seoul",),
    "hkt": ("Asia/Hong_Kong",),
    "sgt": ("Asia/Singapore",),
    "aest": ("Australia/Sydney", "Australia/Brisbane"),
    "aedt": ("Australia/Sydney", "Etc/GMT-11"),
    "awst": ("Australia/Perth",),
    "nzst": ("Pacific/Auckland", "Etc/GMT-12"),
}
ZONES_BY_WORDS: Final[dict[str, tuple[str, ...]]] = {
    **{
        f"{name}{kind} time": zone
        for name, zone in (
            ("eastern", ("America/New_York",)),
            ("central", ("America/Chicago",)),
            ("mountain", ("America/Denver",)),
            ("pacific", ("America/Los_Angeles",)),
        )
        for kind in ("", " daylight")
    },
    "eastern standard time": ZONES_BY_LETTERS["est"],
    "central standard time": ZONES_BY_LETTERS["cst"],
    "mountain standard time": ZONES_BY_LETTERS["mst"],
    "pacific standard time": ZONES_BY_LETTERS["pst"],
    "central european time": ("Europe/Berlin",),
    "central european summer time": ZONES_BY_LETTERS["cest"],
    "eastern european time": ("Europe/Athens",),
    "british summer time": ("Europe/London", "Etc/GMT-1"),
    "greenwich mean time": ("UTC",),
    "universal time": ("UTC",),
    "uk time": ("Europe/London",),
    "british time": ("Europe/London",),
    "swiss time": ("Europe/Zurich",),
    "german time": ("Europe/Berlin",),
    "french time": ("Europe/Paris",),
    "indian time": ("Asia/Kolkata",),
    "indian standard time": ("Asia/Kolkata",),
    "japan time": ("Asia/Tokyo",),
    "china time": ("Asia/Shanghai",),
}
