"""Links that open a session with a repository or a notebook.

``material`` checks what a link names against the addresses that the site allows. ``tickets`` signs
it for one user after that user has confirmed it: JupyterLab opens nothing without a ticket.
"""
