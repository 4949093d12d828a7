"""File paths in URLs: any name that a file system accepts, including line breaks."""

from __future__ import annotations

from starlette.convertors import PathConvertor, register_url_convertor


class FilePathConvertor(PathConvertor):
    """``{name:file}``: Starlette's own ``path`` ends at a line break."""

    regex = "(?s:.*)"


register_url_convertor("file", FilePathConvertor())
