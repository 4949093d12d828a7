"""Paths of files in addresses: any name that a file system takes, also with line breaks."""

from __future__ import annotations

from starlette.convertors import PathConvertor, register_url_convertor


class FilePathConvertor(PathConvertor):
    """``{name:file}``: Starlette's own ``path`` ends at a line break."""

    regex = "(?s:.*)"


register_url_convertor("file", FilePathConvertor())
