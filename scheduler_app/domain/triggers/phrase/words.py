"""The vocabulary of the grammar: which English words it knows, and what each stands for."""

from typing import Final

WEEKDAYS: Final = {
    name: number
    for number, names in enumerate(
        (
            "monday mon mo",
            "tuesday tues tue",
            "wednesday weds wed",
            "thursday thurs thur thu",
            "friday fri",
            "saturday sat",
            "sunday sun",
        )
    )
    for name in names.split()
}
#: "mondays" repeats; "monday" is one day unless something else in the phrase repeats.
PLURAL_WEEKDAYS: Final = {f"{name}s": number for name, number in WEEKDAYS.items() if len(name) > 2}
WEEKDAY_CODES: Final = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")

MONTHS: Final = {
    name: number
    for number, names in enumerate(
        (
            "january jan",
            "february feb",
            "march mar",
            "april apr",
            "may",
            "june jun",
            "july jul",
            "august aug",
            "september sept sep",
            "october oct",
            "november nov",
            "december dec",
        ),
        1,
    )
    for name in names.split()
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

#: The hours (24-hour clock) that a part of the day may name.
PARTS_OF_DAY: Final = {"morning": "morning", "afternoon": "afternoon", "evening": "evening", "night": "night"}

EVERY: Final = frozenset({"every", "each", "all"})
AND: Final = frozenset({",", "and", "&", ";"})
TO: Final = frozenset({"to", "-", "through", "thru", "till", "until", "til"})
STARTING: Final = frozenset(
    {"starting", "start", "starts", "beginning", "begin", "begins", "from", "effective"}
)
UNTIL: Final = frozenset({"until", "till", "til", "through", "thru", "ending", "ends"})
EXCEPT: Final = frozenset({"except", "excluding", "but", "without", "excepting", "not"})
