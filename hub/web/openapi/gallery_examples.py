"""Examples of the gallery for the OpenAPI description."""

from __future__ import annotations

from typing import Any

BODIES: dict[str, dict[str, dict[str, Any]]] = {
    "GalleryPublishIn": {
        "job": {
            "summary": "A job that ran, for its group",
            "value": {
                "request": "j-7f3k2m9p",
                "title": "Train a classifier",
                "description": "Trains on *Fashion-MNIST* in ten minutes.",
            },
        },
        "version": {
            "summary": "A new version, with the executed notebook",
            "value": {"request": "j-9x3k7mpa", "item": "g-4c8x5w2n", "outputs": True},
        },
    },
    "GalleryRunIn": {
        "run": {
            "summary": "An older version with another parameter",
            "value": {"version": 1, "group": "cs101", "parameters": {"lr": 0.05}},
        }
    },
    "GalleryForkIn": {
        "fork": {
            "summary": "An own copy for all users",
            "value": {"title": "Train a classifier, with dropout", "audience": "*"},
        }
    },
}
