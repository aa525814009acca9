"""`make check` refuses one name for two classes, and import circles."""

from docs.reference.house import circle, duplicate_names

PAGING = "scheduler_app/store/paging.py"


def test_a_name_of_two_classes_is_refused() -> None:
    classes = [("Page", PAGING), ("_Row", "api/wire/event.py"), ("Page", "api/wire/event.py")]
    assert list(duplicate_names(classes)) == [
        f"class Page is defined in {PAGING} and in api/wire/event.py: give each a name of its own"
    ]


def test_what_users_import_may_have_the_same_names() -> None:
    files = [PAGING, "scheduler_app/client/results.py", "scheduler_app/receiver/keys.py"]
    assert list(duplicate_names(("Page", file) for file in files)) == []


def test_a_circle_is_refused() -> None:
    assert circle({"a": ["b"], "b": ["c"], "c": []}) is None
    assert " imports ".join("aba") in str(circle({"a": ["b", "c"], "b": ["a"], "c": []}))
