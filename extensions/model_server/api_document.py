"""Describe what is served, in the form of OpenAPI 3.1 and as a page that calls it."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

PAGE = """\
<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title><link rel="icon" href="data:;base64,=">
<style>
  :root {{ color-scheme: light dark; }}
  body {{ font: 1rem/1.5 system-ui, sans-serif; max-width: 48rem; margin: 0 auto; padding: 1rem; }}
  label {{ display: block; margin-top: 1rem; font-weight: 600; }}
  select, textarea, button {{ font: inherit; max-width: 100%; box-sizing: border-box; }}
  textarea {{ width: 100%; font-family: monospace; }}
  pre {{ overflow: auto; padding: .75rem; border: 1px solid; min-height: 1.5rem; }}
</style></head>
<body><main><h1>{title}</h1>
<p>Send rows to a model, and get one result a row.
<a href="openapi.json">Description of this API (OpenAPI)</a>{compare}</p>
<form>
<label for="model">Model</label><select id="model">{options}</select>
<label for="rows">Rows, as a JSON list</label>
<textarea id="rows" rows="5">["a text", "another one"]</textarea>
<p><button>Send</button></p>
</form>
<label for="answer">Answer</label>
<pre id="answer" role="status"></pre>
<p>From a program: <code>POST models/NAME</code> with <code>{{"rows": […]}}</code> and a token of
JupyterHub in the header <code>Authorization: token …</code>.</p>
</main><script src="page.js"></script></body>
</html>
"""
SCRIPT = """\
document.querySelector("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const shown = document.querySelector("#answer");
  let rows;
  try { rows = JSON.parse(document.querySelector("#rows").value); } catch (error) {
    shown.textContent = "The rows are not JSON: " + error.message;
    return;
  }
  shown.textContent = "…";
  try {
    const cookie = document.cookie.match(/(?:^|;\\s*)_xsrf="?([^;"]*)/);
    const model = encodeURIComponent(document.querySelector("#model").value);
    const answer = await fetch("models/" + model, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-XSRFToken": cookie ? cookie[1] : "" },
      body: JSON.stringify({ rows }),
    });
    shown.textContent = answer.status + "\\n" + JSON.stringify(await answer.json(), null, 2);
  } catch (error) {
    shown.textContent = "The model does not answer: " + error.message;
  }
});
"""
_REFUSED = {
    "400": "The body has another form, or the model does not take its rows.",
    "404": "No model has this name.",
    "413": "Too many rows.",
    "429": "The queue is full, or other calls delay an answer too long; see Retry-After.",
    "500": "The model raised an error, or its results cannot be sent.",
    "504": "The model takes longer than the deadline of the call.",
}


def page(title: str, models: Iterable[str], *, compared: bool = False) -> str:
    """Return the page as HTML; its script is ``SCRIPT``.

    Args:
        compared: link the page that compares all models.
    """
    compare = ' · <a href="compare">Compare all models</a>' if compared else ""
    options = "".join(f"<option>{escape(name)}</option>" for name in models)
    return PAGE.format(title=escape(title), options=options, compare=compare)


def openapi(title: str, models: Iterable[str], deadline: float) -> dict[str, object]:
    """Return the description of the API.

    Args:
        deadline: seconds, unless a request says.
    """
    body = {
        "type": "object",
        "required": ["rows"],
        "additionalProperties": False,
        "properties": {
            "rows": {"type": "array", "items": {}},
            "deadline": {"type": "number", "exclusiveMinimum": 0, "default": deadline},
        },
    }
    results = {"type": "object", "properties": {"results": {"type": "array", "items": {}}}}
    answers: dict[str, object] = {
        "200": {
            "description": "One result a row.",
            "content": {"application/json": {"schema": results}},
        }
    }
    answers |= {status: {"description": sentence} for status, sentence in _REFUSED.items()}
    name = {
        "name": "model",
        "in": "path",
        "required": True,
        "schema": {"type": "string", "enum": list(models)},
    }
    call = {
        "summary": "Execute a model on rows",
        "operationId": "execute",
        "parameters": [name],
        "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
        "responses": answers,
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": "1"},
        "servers": [{"url": "."}],
        "paths": {"/models/{model}": {"post": call}},
    }
