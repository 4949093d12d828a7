"""The web layer of the service: REST, event streams and pages.

The composition root needs three names:

    auth = HubSignIn.of(settings, secrets.service_token)
    app = build_app(context, auth, settings, courses=…, hub_token=…, crypt_key=…)
    await Server.of(app, port=settings.service_port).serve()
"""

from __future__ import annotations

from .app import Server, build_app
from .security.hub_oauth import HubSignIn, SignIn, TokenHolder

__all__ = ["HubSignIn", "Server", "SignIn", "TokenHolder", "build_app"]
