"""Notifications: what happens to users' sessions and jobs is told by mail, webhook and chat.

The collector turns events of the store into rows of an outbox, and the delivery sends them as few
messages, with retries. Both run in threads of their own: the scheduling loop waits for neither.
"""
