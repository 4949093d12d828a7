"""The page that compares the results of all pipelines of a shelf for the same rows.

Its script calls the model ``all`` in parts that fit the queue, and builds the table from text only.
"""

from __future__ import annotations

from html import escape
from typing import Final

PART_ROWS: Final = 64
"""Most rows of one call of the page, so that calls of others come in between."""
PAGE = """\
<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Compare {title}</title><link rel="icon" href="data:;base64,=">
<style>
  :root {{ color-scheme: light dark; }}
  body {{ font: 1rem/1.5 system-ui, sans-serif; max-width: 90rem; margin: 0 auto; padding: 1rem; }}
  label {{ display: block; margin-top: 1rem; font-weight: 600; }}
  label.inline {{ display: inline; font-weight: 400; }}
  select, textarea, input, button {{ font: inherit; max-width: 100%; box-sizing: border-box; }}
  textarea {{ width: 100%; font-family: monospace; }}
  .scroll {{ overflow: auto; max-height: 70vh; border: 1px solid; }}
  table {{ border-collapse: collapse; }}
  th, td {{ padding: .25rem .5rem; border: 1px solid; text-align: left; vertical-align: top; }}
  td.row {{ max-width: 30rem; overflow-wrap: anywhere; }}
  thead th {{ position: sticky; top: 0; background: Canvas; }}
  .error {{ font-style: italic; }}
  [hidden] {{ display: none; }}
</style></head>
<body><main><h1>Compare {title}</h1>
<p>Send rows to all {count} models, and see where their results differ.
<a href="./">Call one model</a></p>
<form>
<label for="form">Form of the rows</label>
<select id="form">
<option value="text">One text a line</option>
<option value="numbers">One row of numbers a line, separated by commas</option>
<option value="json">A JSON list</option>
</select>
<label for="rows">Rows</label>
<textarea id="rows" rows="6" required></textarea>
<label for="file">Or rows from a file</label>
<input id="file" type="file" accept=".txt,.csv,.json">
<label for="expected">Expected results, one a line (optional)</label>
<textarea id="expected" rows="3"></textarea>
<p><button>Compare</button></p>
</form>
<p id="state" role="status"></p>
<div id="found" hidden>
<p><input id="only" type="checkbox"> <label class="inline" for="only">Only rows with
disagreements</label> <button type="button" id="save">Save as CSV</button></p>
<div class="scroll" tabindex="0" role="region" aria-label="Results"><table id="table"></table></div>
</div>
</main><script src="compare.js" data-rows="{rows}"
data-deadline="{seconds}"></script></body>
</html>
"""
SCRIPT = """\
"use strict";
const SHOWN = 500, TRIES = 5;
const part = Number(document.currentScript.dataset.rows);
const deadline = Number(document.currentScript.dataset.deadline);
const get = (name) => document.getElementById(name);
let latest = null;
const lines = (text) => text.split(/\\r?\\n/).filter((line) => line.trim() !== "");
const isError = (value) => value !== null && typeof value === "object" && "error" in value
  && Object.keys(value).length === 1;
const shown = (value) => isError(value) ? "Error: " + value.error
  : typeof value === "string" ? value : JSON.stringify(value);
const isNumber = (text) => text.trim() !== "" && Number.isFinite(Number(text));
// Results that are texts are compared as texts; above 2^53 a number has lost its last digits.
const same = (value, expected) => {
  if (typeof value === "boolean") return String(value) === expected.toLowerCase();
  if (typeof value !== "number") return shown(value) === expected;
  return isNumber(expected) && Number.isSafeInteger(Math.trunc(value))
    ? Number(expected) === value && Number.isSafeInteger(Math.trunc(Number(expected)))
    : shown(value) === expected;
};
// Values of a regressor are never those expected, to the last digit.
const isMeasured = (values) => values.some((each) => typeof each === "number"
  && !Number.isInteger(each));

function rowsOf(form, text) {
  if (form === "json") {
    const rows = JSON.parse(text);
    if (!Array.isArray(rows)) throw new Error("It is not a list.");
    return rows;
  }
  if (form === "text") return lines(text);
  return lines(text).map((line, at) => line.split(",").map((cell) => {
    if (!isNumber(cell)) throw new Error("Line " + (at + 1) + " has a cell that is no number.");
    return Number(cell);
  }));
}

async function results(rows) {
  const cookie = document.cookie.match(/(?:^|;\\s*)_xsrf="?([^;"]*)/);
  for (let tried = 1; ; tried += 1) {
    const answer = await fetch("models/all", {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-XSRFToken": cookie ? cookie[1] : "" },
      body: JSON.stringify({ rows, deadline }),
    });
    if (answer.status === 429 && tried < TRIES) {
      const seconds = Number(answer.headers.get("Retry-After")) || 1;
      await new Promise((done) => setTimeout(done, 1000 * seconds));
      continue;
    }
    const body = await answer.json().catch(() => ({}));
    if (answer.ok) return body.results;
    const error = body.error || {};
    const sentence = error.message || body.message || "The server answers " + answer.status + ".";
    throw new Error(sentence + " " + (error.accepted || ""));
  }
}

function judged(results) {
  const counts = new Map();
  for (const each of Object.values(results)) {
    const key = JSON.stringify(each);
    counts.set(key, (counts.get(key) || 0) + 1);
  }
  const most = Math.max(...counts.values());
  const leading = [...counts.keys()].filter((key) => counts.get(key) === most);
  const common = leading.length === 1 ? leading[0] : null;
  return { differ: counts.size > 1, common };
}

function cell(parent, kind, text) {
  const made = document.createElement(kind);
  made.textContent = text;
  parent.append(made);
  return made;
}

function heading(parent, text, scope) {
  cell(parent, "th", text).scope = scope;
}

function draw() {
  const { rows, found, expected, names } = latest;
  const table = get("table");
  table.replaceChildren();
  const head = table.createTHead().insertRow();
  for (const name of ["Row", "Agreement", ...(expected.length ? ["Expected"] : []), ...names]) {
    heading(head, name, "col");
  }
  const body = table.createTBody();
  if (expected.length) {
    const line = body.insertRow();
    heading(line, "Accuracy", "row");
    cell(line, "td", "");
    cell(line, "td", "");
    for (const name of names) {
      if (isMeasured(found.map((each) => each[name]))) {
        cell(line, "td", "no classes");
        continue;
      }
      const right = found.filter((each, at) => same(each[name], expected[at])).length;
      cell(line, "td", (100 * right / found.length).toFixed(1) + " %");
    }
  }
  let drawn = 0, differing = 0;
  found.forEach((each, at) => {
    const { differ, common } = judged(each);
    differing += differ ? 1 : 0;
    if (drawn >= SHOWN || (get("only").checked && !differ)) return;
    drawn += 1;
    const line = body.insertRow();
    cell(line, "td", shown(rows[at])).className = "row";
    cell(line, "td", differ ? "differ" : "agree");
    if (expected.length) cell(line, "td", expected[at]);
    for (const name of names) {
      const value = each[name];
      const place = cell(line, "td", "");
      const marked = differ && JSON.stringify(value) !== common;
      cell(place, marked ? "mark" : "span", shown(value)).className = isError(value) ? "error" : "";
    }
  });
  get("state").textContent = found.length + " rows, " + differing + " with disagreements. "
    + (drawn === SHOWN ? "The table shows " + SHOWN + " rows; the CSV file has all. " : "")
    + latest.note;
}

// A cell that a spreadsheet would take for a formula begins with an apostrophe; some split lines at
// semicolons, whatever the quotes.
const isFormula = (text) => !isNumber(text)
  && text.split(/[;\\n]/).some((each) => /^\\s*"?[=+\\-@\\t\\r]/.test(each));
const field = (text) => '"' + (isFormula(text)
  ? text.split(/([;\\n])/).map((each) => isFormula(each) ? "'" + each : each).join("") : text)
  .replaceAll('"', '""') + '"';

function csv() {
  const { rows, found, expected, names } = latest;
  const head = ["row", "agreement", ...(expected.length ? ["expected"] : []), ...names];
  const body = found.map((each, at) => [
    shown(rows[at]), judged(each).differ ? "differ" : "agree",
    ...(expected.length ? [expected[at]] : []), ...names.map((name) => shown(each[name])),
  ]);
  return [head, ...body].map((line) => line.map(field).join(",") + "\\r\\n").join("");
}

get("file").addEventListener("change", async (event) => {
  const [file] = event.target.files;
  if (!file) return;
  get("rows").value = await file.text();
  if (file.name.endsWith(".json")) get("form").value = "json";
});
get("only").addEventListener("change", draw);
get("save").addEventListener("click", () => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(["\\ufeff" + csv()], { type: "text/csv" }));
  link.download = "comparison.csv";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
});
document.querySelector("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = document.querySelector("form button");
  const found = [];
  let rows;
  try {
    rows = rowsOf(get("form").value, get("rows").value);
  } catch (error) {
    get("state").textContent = "The rows cannot be read: " + error.message;
    return;
  }
  const expected = lines(get("expected").value).map((line) => line.trim());
  if (!rows.length) {
    get("state").textContent = "There are no rows.";
    return;
  }
  if (expected.length && expected.length !== rows.length) {
    get("state").textContent = "There are " + rows.length + " rows and " + expected.length
      + " expected results. Give one for each row, or none.";
    return;
  }
  button.disabled = true;
  get("found").hidden = true;
  let note = "";
  try {
    for (let at = 0; at < rows.length; at += part) {
      get("state").textContent = at + " of " + rows.length + " rows are done.";
      found.push(...await results(rows.slice(at, at + part)));
    }
  } catch (error) {
    note = "Stopped after " + found.length + " of " + rows.length + " rows: " + error.message;
  } finally {
    button.disabled = false;
  }
  if (!found.length) {
    get("state").textContent = note;
    return;
  }
  latest = { rows, found, expected, names: Object.keys(found[0]), note };
  get("found").hidden = false;
  draw();
});
"""


def comparison_page(title: str, count: int, most_rows: int, seconds: float) -> str:
    """Return the page as HTML; its script is ``SCRIPT``.

    Args:
        count: of the models.
        most_rows: of one call.
        seconds: deadline of a call.
    """
    return PAGE.format(
        title=escape(title), count=count, rows=min(PART_ROWS, most_rows), seconds=f"{seconds:g}"
    )
