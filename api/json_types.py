"""Types of JSON on its way in and out."""

from typing import Any

#: A JSON object of an answer.
View = dict[str, object]

#: What a schema has loaded: marshmallow gives no types to values, the schema has checked them.
Loaded = dict[str, Any]
#: The headers of an answer, and an answer that has them, such as its ETag.
Headers = dict[str, str]
Tagged = tuple[View, Headers]
