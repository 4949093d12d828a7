"""The port to the published items of the gallery, with the values that it stores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

from ..records.audit import AuditEntry

EVERYONE: Final = "*"
"""The audience of an item that all users may see; no group can have this name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GalleryItem:
    """A published job, notebook or pipeline, without the content of its versions.

    Attributes:
        audience: the group whose members may see it, or ``EVERYONE``.
        kind: ``notebook``, ``command`` or ``pipeline``, of the newest version.
        what: the notebook, the command or the number of jobs of the newest version, for lists.
        version: number of the newest version, from 1.
        forked_from, forked_version, forked_owner: the version that it was made from; empty and 0.
        search: title, owner and description in lower case.
        withdrawn_at: None while it is published.
    """

    id: str
    owner: str
    audience: str
    title: str
    kind: str
    what: str
    version: int
    created_at: float
    updated_at: float
    search: str
    forked_from: str = ""
    forked_version: int = 0
    forked_owner: str = ""
    withdrawn_at: float | None = None
    number: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class GalleryVersion:
    """One version of an item.

    Attributes:
        group: the group that the published job ran under; empty for one that never ran.
        request: the published job; empty for a notebook without a run.
        succeeded: whether the published jobs had succeeded.
        jobs: the jobs as JSON text (``hub.gallery.published_job``).
    """

    item: str
    version: int
    published_at: float
    description: str
    group: str
    request: str
    succeeded: bool
    jobs: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GalleryFilter:
    """Which items are listed, newest first.

    Attributes:
        audiences: only items for these audiences, and those of ``owner``; None for all.
        only: only items of this owner, whatever the audience; empty for all owners.
        words: each must occur in ``GalleryItem.search``.
        offset: number of items to leave out at the beginning.
    """

    audiences: frozenset[str] | None
    owner: str
    only: str = ""
    words: tuple[str, ...] = ()
    offset: int = 0
    limit: int = 50


class GalleryStore(Protocol):
    """The part of the store for the gallery; see ``hub.interfaces.store``."""

    def add_gallery_item(
        self, item: GalleryItem, version: GalleryVersion, *, most: int, change: AuditEntry
    ) -> None:
        """Publish the first version of an item.

        Raises:
            OverMaximum: the owner has ``most`` published items.
            Conflict: the owner has a published item with this title.
        """

    def add_gallery_version(
        self, item: GalleryItem, version: GalleryVersion, *, change: AuditEntry
    ) -> None:
        """Publish a further version; ``item`` has the new values.

        Raises:
            Conflict: another call has published this version, or the item was withdrawn; or the
                owner has another published item with this title.
        """

    def gallery_item(self, item_id: str) -> GalleryItem:
        """Return an item, also a withdrawn one. Raises NotFound."""

    def gallery_versions(self, item_id: str) -> tuple[GalleryVersion, ...]:
        """Return the versions of an item, newest first."""

    def gallery_items(self, which: GalleryFilter) -> tuple[GalleryItem, ...]:
        """Return the published items of a filter."""

    def withdraw_gallery_item(self, item_id: str, *, at: float, change: AuditEntry) -> bool:
        """Withdraw an item and return True; without a published one, return False."""
