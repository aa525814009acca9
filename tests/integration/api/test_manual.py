"""The manual as the API serves it."""

from pathlib import Path

from flask import Flask

from scheduler_app.api import blueprint, problems
from scheduler_app.api.routes import documentation


def application(folder: Path) -> Flask:
    app = Flask("test")
    problems.register_problems(app)
    blueprint.register_declared_parameters(app)
    documentation.register_manual(app, folder)
    return app


def test_its_pages_are_served_and_may_load_nothing_from_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("<h1>Manual</h1>")
    (tmp_path / "_static").mkdir()
    (tmp_path / "_static" / "style.css").write_text("p {}")
    client = application(tmp_path).test_client()
    front = client.get("/docs/")
    assert (front.status_code, front.text) == (200, "<h1>Manual</h1>")
    assert "default-src 'none'" in front.headers["Content-Security-Policy"]
    assert client.get("/docs/_static/style.css").status_code == 200
    assert client.get("/docs/../manual.py").status_code == 404
    assert client.get("/docs/nothing.html").status_code == 404


def test_a_file_is_served_with_the_query_that_a_page_of_the_manual_adds(tmp_path: Path) -> None:
    """Pages name their styles with a hash of the content, and the search's form adds words."""
    (tmp_path / "index.html").touch()
    for name, query in (("style.css", "v=d75fae25"), ("search.html", "q=restore&check_keywords=yes")):
        (tmp_path / name).touch()
        assert application(tmp_path).test_client().get(f"/docs/{name}?{query}").status_code == 200


def test_where_it_is_not_built_the_answer_says_how(tmp_path: Path) -> None:
    answer = application(tmp_path).test_client().get("/docs/")
    assert answer.status_code == 404
    assert "make docs" in answer.get_json()["detail"]
    to_person = application(tmp_path).test_client().get("/docs/", headers={"Accept": "text/html,*/*;q=0.8"})
    assert (to_person.status_code, to_person.mimetype) == (404, "text/html")
    assert "make docs" in to_person.text
    assert "default-src 'none'" in to_person.headers["Content-Security-Policy"]
