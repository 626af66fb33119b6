"""Reads a page as a browser would, and remembers what it would have to fetch."""

from __future__ import annotations

import re
from html.parser import HTMLParser

VOID = {"meta", "br", "img", "hr", "link", "input"}
_FETCHING = {"src", "srcset", "href", "xlink:href", "data", "action", "poster", "background"}
_URL = re.compile(r"url\(\s*['\"]?([^'\")]*)")


class Page(HTMLParser):
    """The tags of a page in order, its texts, what it fetches; unbalanced tags are an error."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.texts: dict[str, list[str]] = {}
        self.fetched: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def named(self, tag: str) -> list[dict[str, str]]:
        """The attributes of all tags of this name."""
        return [attributes for name, attributes in self.tags if name == tag]

    def classed(self, word: str) -> list[dict[str, str]]:
        """The attributes of all tags of this class."""
        return [attributes for _, attributes in self.tags if word in attributes.get("class", "").split()]

    def text(self, tag: str) -> str:
        """Everything written directly inside tags of this name."""
        return " ".join(self.texts.get(tag, []))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes a tag."""
        attributes = {name: value or "" for name, value in attrs}
        self.tags.append((tag, attributes))
        self.fetched += [value for name, value in attributes.items() if name in _FETCHING and not value.startswith("#")]
        self.fetched += [url for value in attributes.values() for url in _URL.findall(value) if not url.startswith("#")]
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes a tag without content."""
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        """Closes a tag."""
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Notes a text."""
        if self._open:
            self.texts.setdefault(self._open[-1], []).append(data)
            if self._open[-1] == "style":
                self.fetched += _URL.findall(data) + re.findall(r"@import.*", data)
