"""Write docs/reference/rest-api.md from the API's description: ``python -m tests.rest_api``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .hub.web.fakes import API, World

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "rest-api.md"


def page() -> str:
    described = World().app.openapi()
    parts = [
        "# REST API",
        f"Everything lies below `{API}`. This page is generated from the description that the "
        "service itself serves as `openapi.json` there; after a change, run "
        "`python -m tests.rest_api`.",
        described["info"]["description"].strip(),
        "## Calls",
    ]
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            parts += _operation(method, path.removeprefix(API), operation)
    parts.append("## Values")
    for name, schema in sorted(described["components"]["schemas"].items()):
        parts += _schema(name, schema)
    return "\n\n".join(parts) + "\n"


def _operation(method: str, path: str, operation: dict[str, Any]) -> Iterator[str]:
    yield f"### `{method.upper()} {path}`"
    yield f"{operation['summary']}. For: {', '.join(operation['tags'])}."
    if operation.get("description"):
        yield operation["description"].strip()
    if parameters := operation.get("parameters"):
        rows = ["| parameter | in | type | |", "| --- | --- | --- | --- |"]
        rows += [
            f"| `{each['name']}` | {each['in']} | {_type(each['schema'])} "
            f"| {each.get('description', '')} |"
            for each in parameters
        ]
        yield "\n".join(rows)
    if body := operation.get("requestBody"):
        content = body["content"]["application/json"]
        yield f"Body: {_type(content['schema'])}."
        for example in content.get("examples", {}).values():
            yield f"{example['summary']}:\n\n{_json(example['value'])}"
    rows = ["| answer | content | |", "| --- | --- | --- |"]
    for status, answer in operation["responses"].items():
        content = answer.get("content", {})
        kinds = ", ".join(f"`{kind}`" for kind in content)
        found = [_type(c["schema"]) for c in content.values() if c.get("schema")]
        rows.append(f"| {status} | {' '.join([kinds, *found])} | {answer['description']} |")
    yield "\n".join(rows)
    example = operation["responses"].get("200", {}).get("content", {})
    if shown := example.get("application/json", {}).get("example"):
        yield _json(shown)


def _schema(name: str, schema: dict[str, Any]) -> Iterator[str]:
    yield f"### {name}"
    if schema.get("description"):
        yield schema["description"].strip()
    if "enum" in schema:
        yield f"One of: {_type(schema)}."
        return
    required = schema.get("required", ())
    rows = ["| field | type | |", "| --- | --- | --- |"]
    for field, about in schema.get("properties", {}).items():
        notes = [about.get("description", "")] + (["required"] if field in required else [])
        rows.append(f"| `{field}` | {_type(about)} | {'; '.join(filter(None, notes))} |")
    yield "\n".join(rows)


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(_type(each) for each in schema["anyOf"])
    if schema.get("type") == "array":
        return f"list of {_type(schema['items'])}"
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    return str(schema.get("const") or schema.get("type") or "any")


def _json(value: object) -> str:
    return f"```json\n{json.dumps(value, indent=2, ensure_ascii=False)}\n```"


def main() -> None:
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
    print(f"Wrote {PAGE}")


if __name__ == "__main__":
    main()
