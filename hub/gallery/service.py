"""Publish, find, run, fork and withdraw the items of the gallery, with the rights of each caller.

An item is visible to its owner, to members and teachers of its audience as they are now, and to
administrators. For all others it does not exist.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from ...courses.model.interfaces import Blobs
from ..admission.request_factory import check_text, new_id
from ..errors import Forbidden, InvalidInput, NotAMember, NotFound
from ..groups.membership import Membership
from ..interfaces.gallery import EVERYONE, GalleryFilter, GalleryItem, GalleryVersion
from ..messages import units
from ..records.audit import AuditAction, AuditEntry
from ..records.identity import Identity
from ..records.json_value import Json
from ..runtime.context import Context
from ..schemas.gallery import (
    GalleryForkIn,
    GalleryItemDetailOut,
    GalleryItemOut,
    GalleryItemsOut,
    GalleryPublishIn,
)
from ..schemas.gallery.items import LONGEST_TITLE
from ..schemas.names import described, hidden_in
from . import views
from .publication import Publication, PublicationSource
from .published_job import GALLERY_LABEL, PublishedJob, read, stored

MOST_ITEMS: Final = 200
"""Max number of published items of a user."""
PAGE: Final = 50
_MOST_WORDS = 10
_SEARCHED = 2000
"""Characters of a description that the search finds."""


@dataclass(frozen=True, slots=True)
class GalleryService:
    """The gallery of a site."""

    context: Context
    blobs: Blobs

    # -- find -----------------------------------------------------------------------------

    def items(
        self, who: Identity, *, search: str = "", mine: bool = False, offset: int = 0
    ) -> GalleryItemsOut:
        """List the published items that the caller may see, the last changed first."""
        which = GalleryFilter(
            audiences=None if who.admin else frozenset({EVERYONE, *self._groups(who)}),
            owner=who.name,
            only=who.name if mine else "",
            words=tuple(search.casefold().split()[:_MOST_WORDS]),
            offset=offset,
            limit=PAGE + 1,
        )
        found = self.context.store.gallery_items(which)
        return GalleryItemsOut(
            items=[GalleryItemOut(**views.item_fields(each)) for each in found[:PAGE]],
            next=offset + PAGE if len(found) > PAGE else 0,
        )

    def one(self, who: Identity, item_id: str, version: int = 0) -> GalleryItemDetailOut:
        """Return an item with one version, the newest one for 0. Raises NotFound."""
        item = self.visible(who, item_id)
        versions = self.context.store.gallery_versions(item.id)
        shown = self._version(item, versions, version)
        return views.detail(
            item,
            shown,
            versions,
            images=self.context.backend,
            may_publish=item.owner == who.name,
            may_withdraw=self._may_withdraw(who, item, versions),
        )

    def jobs(self, who: Identity, item_id: str, version: int = 0) -> tuple[int, list[PublishedJob]]:
        """Return the number and the jobs of a version, the newest one for 0. Raises NotFound."""
        item = self.visible(who, item_id)
        found = self._version(item, self.context.store.gallery_versions(item.id), version)
        return found.version, read(found.jobs)

    def notebook(
        self, who: Identity, item_id: str, version: int = 0, job: int = 0
    ) -> tuple[str, bytes]:
        """Return name and content of the notebook of a job. Raises NotFound."""
        _, jobs = self.jobs(who, item_id, version)
        if job >= len(jobs) or not jobs[job].notebook:
            raise NotFound(f"{item_id} has no notebook {job}.")
        return jobs[job].notebook, self.content(jobs[job].sha256)

    def output(
        self, who: Identity, item_id: str, version: int = 0, job: int = 0
    ) -> tuple[str, bytes]:
        """Return name and content of the published output of a job. Raises NotFound."""
        _, jobs = self.jobs(who, item_id, version)
        if job >= len(jobs) or not jobs[job].output:
            raise NotFound(f"No outputs of {item_id} are published.")
        return jobs[job].output, self.content(jobs[job].output_sha256)

    def content(self, sha256: str) -> bytes:
        """Return a content of the blob store. Raises NotFound."""
        with self.blobs.open(sha256) as file:
            return file.read()

    def visible(self, who: Identity, item_id: str) -> GalleryItem:
        """Return a published item.

        Raises:
            NotFound: there is no such item, it was withdrawn, or the caller may not see it. The
                answers are the same, so that ids reveal nothing.
        """
        missing = NotFound(
            f"There is no item {item_id[:80]!r} in the gallery.",
            accepted="`carrel gallery list` lists those that you may see.",
        )
        try:
            item = self.context.store.gallery_item(item_id)
        except NotFound:
            raise missing from None
        may_see = (
            who.admin
            or item.owner == who.name
            or item.audience == EVERYONE
            or item.audience in self._groups(who)
        )
        if item.withdrawn_at is not None or not may_see:
            raise missing
        return item

    def audiences(self, who: Identity) -> list[str]:
        """Return the groups to which the caller may publish, beside all users."""
        if who.admin:
            return [group.name for group in self.context.store.groups()]
        return self._groups(who)

    # -- change ---------------------------------------------------------------------------

    def publish(self, who: Identity, body: GalleryPublishIn) -> GalleryItemDetailOut:
        """Publish a job, a notebook or a pipeline, or a new version of an item of the caller.

        Raises:
            InvalidInput: the title is empty, or both or neither of a job and a request are given.
            NotFound, Forbidden: the job or the item is not the caller's.
            NotAMember: the caller is not in the group that should see it.
            Conflict: the caller has another item with this title.
            TooLarge: the notebook or the output is too large.
        """
        old = self._own(who, body.item) if body.item else None
        title = self._title(body.title or (old.title if old else ""))
        source = self._source(who, body)
        audience = body.audience or (old.audience if old else source.group)
        self._check_audience(who, audience)
        description = self._description(who, body, old)
        if old is not None:
            new = self._item(who, source, title, description, audience)
            return self._new_version(who, old, new, self._first(new, source, description))
        item = self._item(who, source, title, description, audience)
        item = self._of_fork(who, item, dict(source.labels).get(GALLERY_LABEL, ""))
        version = self._first(item, source, description)
        self._add(who, item, version, AuditAction.GALLERY_PUBLISH)
        return self.one(who, item.id)

    def fork(self, who: Identity, item_id: str, body: GalleryForkIn) -> GalleryItemDetailOut:
        """Publish a version of an item as an item of the caller, which names its origin.

        Raises:
            NotFound: the caller may not see the item.
            NotAMember: the caller is not in the group that should see the fork.
            Conflict: the caller has another item with this title.
        """
        old = self.visible(who, item_id)
        shown = self._version(old, self.context.store.gallery_versions(old.id), body.version)
        # Outputs are those of a run of the other owner, who shared them with other people.
        jobs = [
            job.model_copy(update={"output": "", "output_sha256": ""}) for job in read(shown.jobs)
        ]
        source = PublicationSource(jobs=tuple(jobs), group="")
        audience = body.audience or old.audience
        self._check_audience(who, audience)
        title = self._title(body.title or old.title)
        item = replace(
            self._item(who, source, title, shown.description, audience),
            forked_from=old.id,
            forked_version=shown.version,
            forked_owner=old.owner,
        )
        version = self._first(item, source, shown.description)
        self._add(who, item, version, AuditAction.GALLERY_FORK)
        return self.one(who, item.id)

    def withdraw(self, who: Identity, item_id: str) -> None:
        """Hide an item with all its versions. Jobs that were started from it stay.

        Raises:
            NotFound: the caller may not see the item.
            Forbidden: the caller is neither its owner, nor a teacher of its group, nor an
                administrator.
        """
        item = self.visible(who, item_id)
        if not self._may_withdraw(who, item, self.context.store.gallery_versions(item.id)):
            raise Forbidden(
                f"{item.id} belongs to {item.owner}.",
                accepted="Its owner, a teacher of its group or an administrator can withdraw it.",
            )
        change = self._change(who, AuditAction.GALLERY_WITHDRAW, item, before=_values(item))
        self.context.store.withdraw_gallery_item(item.id, at=self.context.clock(), change=change)

    # -- steps ----------------------------------------------------------------------------

    def _source(self, who: Identity, body: GalleryPublishIn) -> PublicationSource:
        publication = Publication(self.context, self.blobs)
        if bool(body.request) == (body.job is not None):
            raise InvalidInput(
                "Name one job to publish.",
                accepted="Send either 'request' or 'job'.",
                field="request",
            )
        if body.job is None:
            return publication.of_request(
                who, body.request, pipeline=body.pipeline, with_outputs=body.outputs
            )
        if body.outputs or body.pipeline:
            raise InvalidInput(
                "A job that has not run has no outputs and no pipeline.",
                accepted="Omit 'outputs' and 'pipeline', or publish a job that ran.",
                field="outputs",
            )
        return publication.of_job(who, body.job)

    def _new_version(
        self, who: Identity, old: GalleryItem, new: GalleryItem, version: GalleryVersion
    ) -> GalleryItemDetailOut:
        item = replace(
            old,
            audience=new.audience,
            title=new.title,
            kind=new.kind,
            what=new.what,
            search=new.search,
            updated_at=new.updated_at,
            version=old.version + 1,
        )
        version = replace(version, item=item.id, version=item.version)
        change = self._change(
            who, AuditAction.GALLERY_PUBLISH, item, before=_values(old), after=_values(item)
        )
        self.context.store.add_gallery_version(item, version, change=change)
        return self.one(who, item.id)

    def _item(
        self, who: Identity, source: PublicationSource, title: str, description: str, audience: str
    ) -> GalleryItem:
        kind, what = views.kind_and_what(source.jobs)
        now = self.context.clock()
        return GalleryItem(
            id=new_id("g"),
            owner=who.name,
            audience=audience,
            title=title,
            kind=kind,
            what=what,
            version=1,
            created_at=now,
            updated_at=now,
            search=f"{title} {who.name} {what} {description[:_SEARCHED]}".casefold(),
        )

    def _first(
        self, item: GalleryItem, source: PublicationSource, description: str
    ) -> GalleryVersion:
        return GalleryVersion(
            item=item.id,
            version=1,
            published_at=item.updated_at,
            description=description,
            group=source.group,
            request=source.request,
            succeeded=source.succeeded,
            jobs=stored(source.jobs),
        )

    def _add(
        self, who: Identity, item: GalleryItem, version: GalleryVersion, action: AuditAction
    ) -> None:
        change = self._change(who, action, item, after=_values(item))
        self.context.store.add_gallery_item(item, version, most=MOST_ITEMS, change=change)

    def _of_fork(self, who: Identity, item: GalleryItem, label: str) -> GalleryItem:
        """Name the item that a published job was started from, if the caller may see it."""
        origin, _, number = label.partition("/")
        try:
            found = self.visible(who, origin)
            version = int(number)
        except (NotFound, ValueError):
            return item
        if found.owner == who.name or not 1 <= version <= found.version:
            return item
        return replace(item, forked_from=found.id, forked_version=version, forked_owner=found.owner)

    def _own(self, who: Identity, item_id: str) -> GalleryItem:
        item = self.visible(who, item_id)
        if item.owner != who.name:
            raise Forbidden(
                f"{item.id} belongs to {item.owner}: only its owner publishes new versions.",
                accepted=f"Fork it: carrel gallery fork {item.id}",
            )
        return item

    def _description(self, who: Identity, body: GalleryPublishIn, old: GalleryItem | None) -> str:
        if body.description is not None:
            return check_text(body.description, "description")
        if old is None:
            return ""
        return self._version(old, self.context.store.gallery_versions(old.id), 0).description

    def _check_audience(self, who: Identity, audience: str) -> None:
        """Raise NotAMember unless the caller may publish to this group, which exists."""
        allowed = self.audiences(who)
        if audience == EVERYONE or audience in allowed:
            return
        yours = f"Your groups: {', '.join(allowed)}. " if allowed else ""
        raise NotAMember(
            f"You cannot publish to the group {audience[:80]!r}.",
            accepted=f"{yours}All users: {EVERYONE!r}.",
            field="audience",
        )

    def _title(self, text: str) -> str:
        title = " ".join(text.split())
        if not title or len(title) > LONGEST_TITLE:
            raise InvalidInput(
                "The title is missing." if not title else "The title is too long.",
                accepted=f"1 to {LONGEST_TITLE} characters.",
                field="title",
            )
        if hidden := hidden_in(title):
            raise InvalidInput(
                f"The title has the hidden character {described(hidden)}.",
                accepted="Printable characters of any script.",
                field="title",
            )
        return check_text(title, "title")

    def _version(
        self, item: GalleryItem, versions: tuple[GalleryVersion, ...], wanted: int
    ) -> GalleryVersion:
        for each in versions:
            if each.version == (wanted or item.version):
                return each
        raise NotFound(
            f"{item.id} has no version {wanted}.",
            accepted=f"It has {units.count(item.version, 'version')}.",
        )

    def _groups(self, who: Identity) -> list[str]:
        return [group.name for group in Membership.of(self.context).known_groups(who)]

    def _may_withdraw(
        self, who: Identity, item: GalleryItem, versions: tuple[GalleryVersion, ...]
    ) -> bool:
        if who.admin or item.owner == who.name:
            return True
        taught = self.context.store.taught_by(who.name)
        # A teacher of the group whose results were published to others may withdraw them, too.
        return not taught.isdisjoint({item.audience, *(each.group for each in versions)})

    def _change(
        self,
        who: Identity,
        action: AuditAction,
        item: GalleryItem,
        *,
        before: dict[str, Json] | None = None,
        after: dict[str, Json] | None = None,
    ) -> AuditEntry:
        return AuditEntry(
            at=self.context.clock(),
            who=who.name,
            action=action,
            target=item.id,
            before=before or {},
            after=after or {},
        )


def _values(item: GalleryItem) -> dict[str, Json]:
    values: dict[str, Json] = {
        "owner": item.owner,
        "title": item.title,
        "audience": "all users" if item.audience == EVERYONE else item.audience,
        "version": item.version,
    }
    if item.forked_from:
        values["forked_from"] = f"{item.forked_from}/{item.forked_version}"
    return values
