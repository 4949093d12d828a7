// The queue: places with their reasons, one's own ones marked.

function rowOf(row, link) {
  const who = [row.owner, row.group].filter(Boolean).join(", ");
  const what = row.title || row.kind;
  const named = row.request_id
    ? make("a", { class: "carrel-link", href: `${link}requests/${encodeURIComponent(row.request_id)}`, target: "_blank", rel: "noopener" }, what)
    : what;
  const why = [row.sentence.replace(/^Place \d+\. /, ""), estimate(row.expected_at, null)];
  return make("tr", { class: row.yours ? "carrel-mine" : null },
    make("th", { scope: "row", class: "carrel-number" }, String(row.place)),
    make("td", {}, named, " ", row.yours ? make("span", { class: "carrel-mark" }, "yours") : null),
    make("td", {}, row.devices),
    make("td", {}, who),
    make("td", {}, why.filter(Boolean).join(" ")));
}

function render({ model, el }) {
  const outer = frame(model, el, "queue");
  const sentence = make("p", { class: "carrel-facts" });
  const rows = make("tbody", {});
  const heads = ["Place", "What", "Devices", "Who", "Why it waits"];
  const table = make("table", { class: "carrel-table" },
    make("caption", { class: "carrel-unseen" }, "The queue"),
    make("thead", {}, make("tr", {}, ...heads.map((head) => make("th", { scope: "col" }, head)))), rows);
  const more = make("p", { class: "carrel-soft" });
  // Of the first of one's own: the others have a page each.
  let first = "";
  const why = whyDetails(model, () => first);
  outer.body.append(make("strong", { class: "carrel-title" }, "The queue"), sentence,
    make("div", { class: "carrel-scroll", tabindex: 0, role: "region", "aria-label": "The queue" }, table), more, why.node);

  let drawn = "";
  const draw = () => {
    const queue = model.get("queue");
    outer.body.classList.toggle("carrel-empty", !queue);
    if (!queue) return;
    const key = JSON.stringify(queue) + Math.floor(now() / 10);
    if (key === drawn) return; // a focused link stays focused
    drawn = key;
    const focused = rows.contains(document.activeElement) ? document.activeElement.href : null;
    first = (queue.rows.find((row) => row.yours && row.request_id) || {}).request_id || "";
    show(why.node, Boolean(first));
    text(sentence, queue.sentence);
    rows.replaceChildren(...queue.rows.map((row) => rowOf(row, model.get("service"))));
    show(table.parentNode, queue.rows.length > 0);
    text(more, queue.more ? `and ${queue.more} more` : "");
    show(more, queue.more > 0);
    if (focused) [...rows.querySelectorAll("a")].find((link) => link.href === focused)?.focus();
    outer.say(queue.sentence);
  };
  const stop = follow(model, ["queue", "service"], draw, 10, outer);
  return () => { stop(); why.stop(); outer.stop(); };
}

export default { render };
