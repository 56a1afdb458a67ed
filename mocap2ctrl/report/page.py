"""Pages that hold everything: a template of this folder, filled in, pictures and videos inside."""

from __future__ import annotations

import base64
from importlib import resources
from typing import Any

import jinja2

JPEG = b"\xff\xd8"
"""How such a file begins."""


def render_page(template: str, **values: Any) -> str:
    """Returns a page as text; what is put in is escaped.

    Args:
        template: a file's name in this folder; it may include others.
        **values: what the template names.
    """
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_template),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(template).render(**values)


def _template(name: str) -> str:
    return resources.files("mocap2ctrl.report").joinpath(name).read_text("utf-8")


def png_uri(content: bytes) -> str:
    """A PNG as an address that holds it."""
    return data_uri(content, "image/png")


def picture_uri(content: bytes) -> str:
    """A JPEG or PNG as an address that holds it."""
    return data_uri(content, "image/jpeg") if content.startswith(JPEG) else png_uri(content)


def data_uri(content: bytes, kind: str) -> str:
    """Any content of a media type as an address that holds it."""
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"
