"""A notebook as a page to read, rendered by nbconvert; only ever answered inside a sandbox."""

from __future__ import annotations

import nbformat

from ..errors import InvalidInput, TooLarge

_MOST_BYTES = 4 * 1024 * 1024


def notebook_page(name: str, content: bytes) -> str:
    """The notebook as HTML. It may hold scripts: the answer must forbid them.

    Raises:
        TooLarge: rendering it would keep the service busy.
        InvalidInput: it cannot be read.
    """
    # nbconvert takes half a second to import; only this page needs it.
    from nbconvert import HTMLExporter  # noqa: PLC0415

    if len(content) > _MOST_BYTES:
        raise TooLarge(
            f"{name} has {len(content) / 2**20:.0f} MiB, which is too much to be shown as a page.",
            accepted="Download it and open it in JupyterLab.",
        )
    try:
        node = nbformat.reads(content.decode(), as_version=4)  # type: ignore[no-untyped-call]
    except (ValueError, nbformat.ValidationError) as error:
        raise InvalidInput(
            f"{name} cannot be read as a notebook.", accepted="Download it as it is."
        ) from error
    exporter = HTMLExporter(template_name="basic", sanitize_html=False)  # type: ignore[no-untyped-call]
    exporter.embed_images = False
    body, _ = exporter.from_notebook_node(node)
    return (
        f"<!doctype html><meta charset=utf-8><title>Notebook</title><style>{_STYLE}</style>{body}"
    )


_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1b2733; background: #fff; margin: 1rem; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: .3rem 0; }
.highlight, .input_area { background: #f5f6f8; border-radius: .3rem; padding: .4rem .6rem; }
.prompt, .jp-InputPrompt, .jp-OutputPrompt { color: #586572; font: 12px monospace; }
table { border-collapse: collapse; } td, th { padding: 3px 8px; border-bottom: 1px solid #d9dee4; }
img, svg { max-width: 100%; }
"""
