// Code that the views share. Text is inserted as text, never as HTML; nothing is loaded from another
// host; clocks run without messages to the kernel.

const SILENCE_MS = 4000; // the kernel sends a heartbeat every 1.5 s
const TICK_MS = 500;

// Create an element with its properties and children; strings become text.
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

// Change the page only where something differs, so that screen readers do not repeat it.
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

// Format a time as the desk does: with the day, unless it is today.
function moment(seconds) {
  const at = new Date(seconds * 1000);
  if (at.toDateString() === new Date().toDateString()) return clock(seconds);
  return at.toLocaleString([], { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
}

function now() {
  return Date.now() / 1000;
}

// Format how far ahead an estimate is, as the desk and the terminal do.
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

// Insert times into a sentence: the hub supplies the text, the browser the time zone.
function dated(parts) {
  return parts.map(({ before, at, after, show }) => before + (at === null ? "" : TOLD[show](at)) + after).join("");
}

// The kernel as the notebook page knows it; null if the page does not expose it.
function kernelOf(model) {
  return (model.widget_manager && model.widget_manager.kernel) || null;
}

// A cell that blocks all threads also blocks the heartbeat: the kernel is busy, not gone. A restarted
// kernel is a different one, however busy it is: the view belonged to the old one.
function watchKernel(kernel) {
  let restarted = false;
  const listen = (_kernel, status) => {
    if (["starting", "restarting", "autorestarting", "dead"].includes(status)) restarted = true;
  };
  if (kernel && kernel.statusChanged) kernel.statusChanged.connect(listen);
  return {
    heartbeat: () => { restarted = false; },
    atWork: () => Boolean(kernel) && !restarted && kernel.status === "busy" && kernel.connectionStatus === "connected",
    stop: () => { if (kernel && kernel.statusChanged) kernel.statusChanged.disconnect(listen); },
  };
}

// The cell that contains this view, if the page is a notebook that can be run.
function cellOf(el) {
  const cell = el.closest(".jp-CodeCell");
  return cell && cell.querySelector(".cm-content") && !document.body.dataset.voila ? cell : null;
}

// Do what a user would do: select the cell, then press the notebook's Run button.
function runCell(cell) {
  const press = (node, kind) => node.dispatchEvent(
    new MouseEvent(kind, { bubbles: true, cancelable: true, composed: true, button: 0 }));
  press(cell, "mousedown");
  press(cell, "mouseup");
  cell.querySelector(".cm-content").focus(); // makes it the active cell
  const panel = cell.closest(".jp-NotebookPanel") || document;
  const run = panel.querySelector('[data-jp-item-name="run"]') || document.querySelector('[data-jp-item-name="run"]');
  const button = run && (run.querySelector("jp-button, button") || run);
  // JupyterLab's buttons listen to one of the two events, never to both.
  if (button) for (const kind of ["mousedown", "mouseup", "click"]) press(button, kind);
}

// Explain why a request is queued: fetched while `wanted()`, and again every 30 s. Explanations are
// cached, so that switching between requests fetches each once. The expected start is left out if the
// view shows it already (`timed()`).
const WHY_S = 30;
function whyTold(model, requestId, wanted, timed) {
  const node = make("div", { class: "carrel-why-said", "aria-live": "polite" });
  const cache = new Map();
  const askedAt = new Map();
  const list = (title, sentences) => sentences.length
    ? make("div", {}, make("strong", {}, title), make("ul", {}, ...sentences.map((each) => make("li", {}, each))))
    : null;
  const draw = () => {
    const found = cache.get(requestId());
    if (!found) {
      text(node, "Asking the service …");
      return;
    }
    const parts = [
      found.start.length && !timed() ? make("p", {}, dated(found.start)) : null,
      list("What would help", found.helps),
      list("Why it is queued", [...found.why, ...found.dated.map(dated), ...found.ahead]),
    ].filter(Boolean);
    node.replaceChildren(...(parts.length ? parts : ["There is no further explanation."]));
  };
  const ask = () => {
    const id = requestId();
    if (!id || !wanted() || now() - (askedAt.get(id) || 0) < WHY_S) return;
    askedAt.set(id, now());
    model.send({ do: "why", request_id: id });
  };
  const heard = () => {
    const found = model.get("why");
    if (found) cache.set(found.request_id, found);
    draw();
  };
  heard();
  model.on("change:why", heard);
  const timer = setInterval(ask, 1000);
  return {
    node,
    refresh: () => { draw(); ask(); },
    stop: () => { clearInterval(timer); model.off("change:why", heard); },
  };
}

// The frame of every view: problem line, detached notice, and announcements for screen readers.
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
  const kernelWatch = watchKernel(kernelOf(model));
  const alive = () => { kernelWatch.heartbeat(); heard = Date.now(); tick(); };
  const tick = () => {
    if (kernelWatch.atWork()) heard = Date.now();
    const gone = Date.now() - heard > SILENCE_MS;
    if (gone && detached.hidden) {
      text(words, `Detached: no heartbeat of the kernel since ${clock(heard / 1000)}. It was restarted, or does not answer.`);
      text(again, cellOf(el) ? "Run this cell again" : "Reload the page");
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
      kernelWatch.stop();
      for (const [event, call] of Object.entries(watched)) model.off(event, call);
    },
  };
}

// Draw now and when one of these traits changes; redraw clocks at an interval. A view without its
// kernel stands still, because its state is unknown.
function follow(model, traits, draw, seconds, outer) {
  for (const trait of traits) model.on(`change:${trait}`, draw);
  const timer = seconds ? setInterval(() => { if (!outer.stale()) draw(); }, seconds * 1000) : null;
  draw();
  return () => {
    if (timer) clearInterval(timer);
    for (const trait of traits) model.off(`change:${trait}`, draw);
  };
}

