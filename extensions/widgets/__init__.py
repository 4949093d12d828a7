"""Live views of jobs, queue and pool, and the form that submits a job, for notebooks and Voila.

    service ──event stream──▶ a feed (thread in the kernel) ──traits──▶ a view (JavaScript)

Nothing here asks again and again: the service says when something has changed.
"""

from __future__ import annotations

from .submit_form import SubmitForm
from .views import JobView, PoolView, QueueView

__all__ = ["JobView", "PoolView", "QueueView", "SubmitForm"]
