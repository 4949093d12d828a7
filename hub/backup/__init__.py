"""``carrel backup`` and ``carrel restore``: the data of a site as one folder of files.

A backup is a folder with ``manifest.json`` (its contents, with a hash of every file) and
``state/``, with the layout of the state folder. `create` writes a backup beside a running
service, `restore` verifies one and creates a state folder from it; both use `copier`.
"""

from __future__ import annotations
