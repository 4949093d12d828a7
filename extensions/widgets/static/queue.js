// View of the queue: positions with their reasons; for your own requests, what would help.

const COLUMNS = ["Position", "Request", "Devices", "Owner", "Reason"];

function rowOf(row, link, opens) {
  const who = [row.owner, row.group].filter(Boolean).join(", ");
  const what = row.title || row.kind;
  const named = row.request_id
    ? make("a", { class: "carrel-link", href: `${link}requests/${encodeURIComponent(row.request_id)}`, target: "_blank", rel: "noopener" }, what)
    : what;
  const why = [row.why, dated(row.expected)];
  return make("tr", { class: row.yours ? "carrel-mine" : null },
    make("th", { scope: "row", class: "carrel-number" }, String(row.place)),
    make("td", {}, named, " ", row.yours ? make("span", { class: "carrel-mark" }, "yours") : null),
    make("td", {}, row.devices),
    make("td", {}, who),
    make("td", {}, why.filter(Boolean).join(" "), " ", opens));
}

// The explanation below one row at a time: only that request's explanation is fetched.
function opener(row, what, isOpen, toggle) {
  if (!row.yours || !row.request_id) return null;
  const unseen = make("span", { class: "carrel-unseen" }, `: ${what}`);
  return make("button", {
    type: "button", class: "carrel-button carrel-why", "aria-expanded": String(isOpen),
    "data-key": `why ${row.request_id}`, onclick: () => toggle(row.request_id),
  }, isOpen ? "Less" : "Why, and what would help", unseen);
}

function render({ model, el }) {
  const outer = frame(model, el, "queue");
  const sentence = make("p", { class: "carrel-facts" });
  const rows = make("tbody", {});
  const table = make("table", { class: "carrel-table" },
    make("caption", { class: "carrel-unseen" }, "The queue"),
    make("thead", {}, make("tr", {}, ...COLUMNS.map((head) => make("th", { scope: "col" }, head)))), rows);
  const more = make("p", { class: "carrel-soft" });
  outer.body.append(make("strong", { class: "carrel-title" }, "The queue"), sentence,
    make("div", { class: "carrel-scroll", tabindex: 0, role: "region", "aria-label": "The queue" }, table), more);

  let open = "";
  const why = whyTold(model, () => open, () => Boolean(open),
    () => model.get("queue").rows.some((row) => row.request_id === open && row.expected.length));
  const below = make("tr", { class: "carrel-mine carrel-below" }, make("td", { colspan: COLUMNS.length }, why.node));
  const toggle = (id) => {
    open = open === id ? "" : id;
    drawn = "";
    draw();
    why.refresh();
  };
  const shown = (row) => {
    const isOpen = Boolean(open) && row.request_id === open;
    const it = rowOf(row, model.get("service"), opener(row, row.title || row.kind, isOpen, toggle));
    return isOpen ? [it, below] : [it];
  };

  let drawn = "";
  const draw = () => {
    const queue = model.get("queue");
    outer.body.classList.toggle("carrel-empty", !queue);
    if (!queue) return;
    const key = JSON.stringify(queue) + Math.floor(now() / 10);
    if (key === drawn) return; // keeps the focus
    drawn = key;
    const keyOf = (node) => node.href || node.dataset.key;
    const focused = rows.contains(document.activeElement) ? keyOf(document.activeElement) : null;
    if (!queue.rows.some((row) => row.request_id === open)) open = "";
    text(sentence, queue.sentence);
    rows.replaceChildren(...queue.rows.flatMap(shown));
    show(table.parentNode, queue.rows.length > 0);
    text(more, queue.more ? `and ${queue.more} more` : "");
    show(more, queue.more > 0);
    if (focused) [...rows.querySelectorAll("a, button")].find((node) => keyOf(node) === focused)?.focus();
    outer.say(queue.sentence);
  };
  const stop = follow(model, ["queue", "service"], draw, 10, outer);
  return () => { stop(); why.stop(); outer.stop(); };
}

export default { render };
