"""Markup that escapes: text is text unless the caller declares that it is markup.

Names of groups, questions and notes come from data and from analysts. They pass through `element`, which escapes every
child and every attribute that is not `Html` already; joining `Html` with plain text gives plain text, which is escaped
again. A mistake shows markup to the reader; it never runs it.
"""

from __future__ import annotations

import html


class Html(str):
    """A piece of markup, put in as it is."""

    __slots__ = ()

    def __html__(self) -> str:
        """Returns itself: templates put in as it is whatever has this method, and escape everything else."""
        return self


NOTHING = Html("")


def element(tag: str, *children: str, **attributes: str) -> Html:
    """Returns a tag with its content.

    Args:
        tag: its name.
        children: in order; those that are not `Html` are escaped.
        attributes: escaped; a trailing underscore is dropped and others become hyphens: `class_`, `aria_label`.

    >>> element("p", "a < b & ", element("b", "<script>"), class_='"x"')
    '<p class="&quot;x&quot;">a &lt; b &amp; <b>&lt;script&gt;</b></p>'
    """
    written = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{html.escape(value)}"' for name, value in attributes.items()
    )
    return Html(f"<{tag}{written}>{together(*children)}</{tag}>")


def together(*parts: str) -> Html:
    """Returns pieces one after another, escaped unless they are markup.

    >>> together(element("i", "x"), " < y")
    '<i>x</i> &lt; y'
    """
    return Html("".join(part if isinstance(part, Html) else html.escape(part) for part in parts))
