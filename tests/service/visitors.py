"""Visitors of pages: a client that keeps its cookie, and pages as their elements."""

from __future__ import annotations

from html.parser import HTMLParser


class Page(HTMLParser):
    """The elements of a page, each with its attributes, and its forms with their fields."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.forms, self.inside = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.elements.append((tag, attributes))
        if tag == "form":
            self.inside.append({"attributes": attributes, "fields": {}})
            self.forms.append(self.inside[-1])
        elif tag in ("input", "select", "textarea", "button") and self.inside:
            self.inside[-1]["fields"][attributes.get("name")] = attributes.get("value", "")

    def handle_endtag(self, tag):
        if tag == "form":
            self.inside.pop()

    def of(self, *tags):
        return [attributes for tag, attributes in self.elements if tag in tags]


class Visitor:
    """Somebody with a browser."""

    def __init__(self, client):
        self.client = client

    def sign_in(self, token, **more):
        answer = self.client.post("/sign-in", data={"token": token, **more})
        self.form_token = ""
        if self.client.cookies.get("cloakgp"):
            self.form_token = self.client.get("/api/me").json()["form_token"]
        return answer

    def get(self, path, **more):
        return self.client.get(path, **more)

    def page(self, path):
        answer = self.get(path)
        assert answer.status_code == 200, answer.text
        return Page(answer.text)

    def send(self, path, fields=None, **more):
        """Send a form of the session."""
        return self.client.post(
            path, data={"form_token": self.form_token, **(fields or {})}, **more
        )
