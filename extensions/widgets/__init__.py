"""Live views of jobs, queue and pool, and a form that submits jobs, for notebooks and Voila.

    service ──event stream──▶ a feed (thread in the kernel) ──traits──▶ a view (JavaScript)

Nothing polls: the service reports when something has changed.
"""

from __future__ import annotations

from .submit_form import SubmitForm
from .sweep_view import SweepView
from .views import JobView, PoolView, QueueView

__all__ = ["JobView", "PoolView", "QueueView", "SubmitForm", "SweepView"]
