// What the views share. Texts go into the page as text, never as HTML; nothing is loaded from
// anywhere; time passes on the screen without asking the kernel.

const SILENCE_MS = 4000; // the kernel says every 1.5 s that it is there
const TICK_MS = 500;

// An element with its properties and children; strings become text.
function make(tag, properties, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

function text(node, words) {
  if (node.textContent !== words) node.textContent = words;
}

// Touch the page only where something is different: a screen reader is not told twice.
function show(node, visible) {
  if (node.hidden === visible) node.hidden = !visible;
}

function count(number, noun) {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

function span(seconds) {
  const left = Math.max(0, Math.round(seconds));
  const [h, min, s] = [Math.floor(left / 3600), Math.floor(left / 60) % 60, left % 60];
  const two = (most, one, least, other) => (least ? `${most} ${one} ${least} ${other}` : `${most} ${one}`);
  if (h >= 48) return two(Math.floor(h / 24), "d", h % 24, "h");
  if (h) return two(h, "h", min, "min");
  return min ? two(min, "min", s, "s") : `${s} s`;
}

function clock(seconds) {
  return new Date(seconds * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
}

// As on the desk: with the day, unless it is today.
function moment(seconds) {
  const at = new Date(seconds * 1000);
  if (at.toDateString() === new Date().toDateString()) return clock(seconds);
  return at.toLocaleString([], { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
}

function now() {
  return Date.now() / 1000;
}

// How far ahead an estimate is, as on the desk and in a terminal.
function comingIn(seconds) {
  const left = Math.round(seconds);
  if (seconds < 5) return "any moment";
  if (left < 60) return `in about ${left} s`;
  if (left < 3600) return `in about ${Math.round(left / 60)} min`;
  if (left >= 86400) return `in about ${Math.round(left / 86400)} d`;
  const minutes = Math.round(left / 60);
  const [h, min] = [Math.floor(minutes / 60), minutes % 60];
  return `in about ${h} h${min && h < 10 ? ` ${min} min` : ""}`;
}

const TOLD = {
  clock: moment,
  coming: (at) => {
    const left = comingIn(at - now());
    return left === "any moment" ? left : `${moment(at)} (${left})`;
  },
};

// A sentence with its times in it: the hub has the words, the reader the clock.
function dated(parts) {
  return parts.map(({ before, at, after, show }) => before + (at === null ? "" : TOLD[show](at)) + after).join("");
}

// The kernel as the notebook page knows it; null where a page does not say.
function kernelOf(model) {
  return (model.widget_manager && model.widget_manager.kernel) || null;
}

// A cell that lets no other thread run silences the heart of its own kernel: it is at work, not gone.
// A kernel that has begun anew is another one, however busy it is: the view belonged to the old one.
function pulse(kernel) {
  let begunAnew = false;
  const listen = (_kernel, status) => {
    if (["starting", "restarting", "autorestarting", "dead"].includes(status)) begunAnew = true;
  };
  if (kernel && kernel.statusChanged) kernel.statusChanged.connect(listen);
  return {
    beat: () => { begunAnew = false; },
    atWork: () => Boolean(kernel) && !begunAnew && kernel.status === "busy" && kernel.connectionStatus === "connected",
    stop: () => { if (kernel && kernel.statusChanged) kernel.statusChanged.disconnect(listen); },
  };
}

// The cell that this view stands in, where the page is a notebook that can be run.
function cellOf(el) {
  const cell = el.closest(".jp-CodeCell");
  return cell && cell.querySelector(".cm-content") && !document.body.dataset.voila ? cell : null;
}

// What a person would do: select the cell, then press the notebook's Run button.
function runCell(cell) {
  const press = (node, kind) => node.dispatchEvent(
    new MouseEvent(kind, { bubbles: true, cancelable: true, composed: true, button: 0 }));
  press(cell, "mousedown");
  press(cell, "mouseup");
  cell.querySelector(".cm-content").focus(); // makes it the active cell
  const panel = cell.closest(".jp-NotebookPanel") || document;
  const run = panel.querySelector('[data-jp-item-name="run"]') || document.querySelector('[data-jp-item-name="run"]');
  const button = run && (run.querySelector("jp-button, button") || run);
  // JupyterLab's buttons listen to one of the two, never to both.
  if (button) for (const kind of ["mousedown", "mouseup", "click"]) press(button, kind);
}

// Why the request with this id waits, asked for while `wanted()`, and anew every 30 s. What was
// told of one is kept meanwhile: to look from one to the other and back asks for each once.
// Where the view has told already when it starts (`timed()`) that is not said again.
const WHY_S = 30;
function whyTold(model, requestId, wanted, timed) {
  const node = make("div", { class: "carrel-why-said", "aria-live": "polite" });
  const told = new Map();
  const askedAt = new Map();
  const list = (title, sentences) => sentences.length
    ? make("div", {}, make("strong", {}, title), make("ul", {}, ...sentences.map((each) => make("li", {}, each))))
    : null;
  const draw = () => {
    const found = told.get(requestId());
    if (!found) {
      text(node, "Asking the service …");
      return;
    }
    const parts = [
      found.start.length && !timed() ? make("p", {}, dated(found.start)) : null,
      list("What would help", found.helps),
      list("Why it waits", [...found.why, ...found.dated.map(dated), ...found.ahead]),
    ].filter(Boolean);
    node.replaceChildren(...(parts.length ? parts : ["There is nothing more to say."]));
  };
  const ask = () => {
    const id = requestId();
    if (!id || !wanted() || now() - (askedAt.get(id) || 0) < WHY_S) return;
    askedAt.set(id, now());
    model.send({ do: "why", request_id: id });
  };
  const heard = () => {
    const found = model.get("why");
    if (found) told.set(found.request_id, found);
    draw();
  };
  heard();
  model.on("change:why", heard);
  const timer = setInterval(ask, 1000);
  return {
    node,
    look: () => { draw(); ask(); },
    stop: () => { clearInterval(timer); model.off("change:why", heard); },
  };
}

// The frame of every view: problem line, detached notice, and the news for screen readers.
function frame(model, el, name) {
  const again = make("button", { type: "button", class: "carrel-button" });
  const words = make("span", {});
  const detached = make("div", { class: "carrel-detached", role: "alert", hidden: true }, words, " ", again);
  const problem = make("p", { class: "carrel-problem", role: "alert", hidden: true });
  const body = make("div", { class: "carrel-body" });
  const news = make("p", { class: "carrel-unseen", role: "status", "aria-live": "polite" });
  const root = make("section", { class: `carrel carrel-${name}` }, detached, problem, body, news);
  el.replaceChildren(root);

  let heard = Date.now();
  const heart = pulse(kernelOf(model));
  const alive = () => { heart.beat(); heard = Date.now(); tick(); };
  const tick = () => {
    if (heart.atWork()) heard = Date.now();
    const gone = Date.now() - heard > SILENCE_MS;
    if (gone && detached.hidden) {
      text(words, `Detached: no word from the kernel since ${clock(heard / 1000)}. It was restarted, or does not answer.`);
      text(again, cellOf(el) ? "Run this cell again" : "Load the page again");
    }
    show(detached, gone);
    root.classList.toggle("carrel-stale", gone);
  };
  const complain = () => {
    const said = model.get("problem");
    text(problem, said || "");
    show(problem, Boolean(said));
    root.classList.toggle("carrel-away", Boolean(model.get("away")));
  };
  again.addEventListener("click", () => {
    const cell = cellOf(el);
    if (cell) runCell(cell);
    else window.location.reload();
  });
  const watched = { "change:heartbeat": alive, "change:problem": complain, "change:away": complain };
  for (const [event, call] of Object.entries(watched)) model.on(event, call);
  const timer = setInterval(tick, TICK_MS);
  complain();
  return {
    root, body,
    stale: () => root.classList.contains("carrel-stale"),
    say: (sentence) => text(news, sentence),
    stop: () => {
      clearInterval(timer);
      heart.stop();
      for (const [event, call] of Object.entries(watched)) model.off(event, call);
    },
  };
}

// Draw now, when one of these traits changes, and every so many seconds what only ticks. A view
// without its kernel stands still: nobody knows what has become of what it shows.
function follow(model, traits, draw, seconds, outer) {
  for (const trait of traits) model.on(`change:${trait}`, draw);
  const timer = seconds ? setInterval(() => { if (!outer.stale()) draw(); }, seconds * 1000) : null;
  draw();
  return () => {
    if (timer) clearInterval(timer);
    for (const trait of traits) model.off(`change:${trait}`, draw);
  };
}

