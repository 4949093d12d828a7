// Parts of the views of a job and of a sweep: state, queue position or devices, end, and a button that cancels it.

const DRAWN_CELLS = 120; // more squares are unreadable
const UNCONFIRMED_S = 5; // how long the kernel may take to confirm a "yes"
const UNCONFIRMED = "The kernel has not confirmed this yet. If it does not, reload the page, or cancel on the page of this job.";

// `noun`: what the button cancels.
function jobParts(noun) {
  const part = { noun };
  part.title = make("strong", { class: "carrel-title" });
  part.state = make("span", { class: "carrel-state" });
  part.id = make("span", { class: "carrel-soft" });
  part.facts = make("p", { class: "carrel-facts" });
  part.wait = make("p", { class: "carrel-wait" });
  part.bar = make("div", {
    class: "carrel-bar", role: "progressbar", "aria-label": "Cells done", "aria-valuemin": 0,
  }, make("div", { class: "carrel-fill" }));
  part.count = make("span", { class: "carrel-count" });
  part.remaining = make("p", { class: "carrel-facts carrel-remaining", hidden: true });
  part.cells = make("ol", { class: "carrel-cells", "aria-label": "Cells" });
  part.stepBar = make("div", {
    class: "carrel-bar carrel-thin", role: "progressbar", "aria-label": "Inside the cell", "aria-valuemin": 0,
  }, make("div", { class: "carrel-fill" }));
  part.step = make("span", { class: "carrel-count" });
  part.cause = make("p", { class: "carrel-cause" });
  part.details = make("pre", { class: "carrel-log", tabindex: 0, "aria-label": "Details of the end" });
  part.more = make("details", { class: "carrel-more" }, make("summary", {}, "Details"), part.details);
  part.log = make("pre", { class: "carrel-log", tabindex: 0, role: "log", "aria-live": "off", "aria-label": "End of the log" });
  part.tail = make("details", { class: "carrel-more", open: true }, make("summary", {}, "Log"), part.log);
  part.page = make("a", { class: "carrel-link", target: "_blank", rel: "noopener" }, "Page of this job");
  part.output = make("a", { class: "carrel-link", download: true }, "Output notebook");
  part.cancel = make("button", { type: "button", class: "carrel-button carrel-danger" }, `Cancel ${noun}`);
  part.yes = make("button", { type: "button", class: "carrel-button carrel-danger" }, "Yes, cancel it");
  part.no = make("button", { type: "button", class: "carrel-button" }, "Keep it");
  part.refused = make("p", { class: "carrel-problem carrel-refused", role: "alert", hidden: true });
  part.sure = make("div", { class: "carrel-sure", role: "group", "aria-label": `Cancel this ${noun}?`, hidden: true },
    make("span", {}, `Cancel this ${noun}? Its output so far is kept.`), part.yes, part.no);
  return part;
}

// The question opens below the button, which stays in place: nothing moves under the pointer, and a
// double click does not confirm. A "yes" may get lost: if the kernel was restarted from elsewhere,
// JupyterLab sends it to a comm that no longer exists.
function confirmation(model, part) {
  let sentAt = null;
  const ask = (open) => {
    show(part.sure, open);
    part.cancel.disabled = open;
    (open ? part.no : part.cancel).focus();
  };
  part.cancel.addEventListener("click", () => ask(true));
  part.no.addEventListener("click", () => ask(false));
  part.yes.addEventListener("click", () => {
    sentAt = now();
    model.send({ do: "cancel" });
    show(part.sure, false);
    draw();
    part.page.focus();
  });
  const draw = () => drawCancel(model, part, sentAt === null ? null : now() - sentAt);
  const confirmed = () => { sentAt = null; };
  for (const trait of ["asked", "refused"]) model.on(`change:${trait}`, confirmed);
  part.sure.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    ask(false);
  });
  return {
    draw,
    stop: () => { for (const trait of ["asked", "refused"]) model.off(`change:${trait}`, confirmed); },
  };
}

function drawCancel(model, part, unconfirmedFor) {
  const job = model.get("job");
  const sent = unconfirmedFor !== null && unconfirmedFor < UNCONFIRMED_S;
  const lost = unconfirmedFor !== null && !sent;
  const asked = model.get("asked") && !job.ended;
  if (!job.can_cancel) show(part.sure, false);
  show(part.cancel, job.can_cancel);
  text(part.cancel, asked ? "Cancelling …" : sent ? "Sending to the kernel …" : `Cancel ${part.noun}`);
  part.cancel.disabled = asked || sent || !part.sure.hidden;
  const refused = job.ended ? "" : lost ? UNCONFIRMED : model.get("refused");
  text(part.refused, refused);
  show(part.refused, Boolean(refused));
}

function drawBar(bar, done, of, words) {
  const known = of > 0;
  bar.classList.toggle("carrel-endless", !known);
  bar.setAttribute("aria-valuetext", words);
  if (known) {
    bar.setAttribute("aria-valuemax", of);
    bar.setAttribute("aria-valuenow", Math.min(done, of));
    bar.firstChild.style.width = `${Math.min(100, (100 * done) / of)}%`;
  } else {
    bar.removeAttribute("aria-valuenow");
    bar.firstChild.style.width = "";
  }
}

function drawCells(list, cells, total) {
  const drawn = total <= DRAWN_CELLS ? total : 0;
  show(list, drawn > 1);
  while (list.children.length > drawn) list.lastChild.remove();
  while (list.children.length < drawn) list.append(make("li", {}, make("span", { class: "carrel-unseen" })));
  const known = new Map(cells.map((cell) => [cell.number, cell]));
  for (let number = 1; number <= drawn; number += 1) {
    const cell = known.get(number);
    const state = cell ? cell.state : "waits";
    const took = cell && cell.seconds !== null ? `, ${cell.seconds.toFixed(1)} s` : "";
    const said = `Cell ${number}: ${state}${took}${cell && cell.note ? `, ${cell.note}` : ""}`;
    const item = list.children[number - 1];
    item.className = `carrel-cell carrel-cell-${state}`;
    if (item.title !== said) { item.title = said; text(item.firstChild, said); }
  }
}

// Elements that appear and disappear with each cell keep their place.
function keepRoom(line, visible, over) {
  if (visible || over) show(line, visible);
  line.style.visibility = visible ? "" : "hidden";
}

function progressWords(job, progress, cells) {
  if (!progress.total) return "";
  let words = `${progress.done} of ${count(progress.total, "cell")}`;
  if (progress.current !== null && progress.current !== undefined) {
    const cell = cells.find((each) => each.number === progress.current);
    words += `, cell ${progress.current} runs`;
    if (cell) words += ` (${span(now() - cell.started_at)})`;
  }
  return words;
}

function stepWords(step) {
  const of = step.of ? `${step.done} of ${step.of}` : `${step.done}`;
  return step.text ? `${of}: ${step.text}` : of;
}

function facts(job) {
  const parts = [job.devices.length ? job.devices.join(", ") : job.devices_text, `group ${job.group}`];
  if (job.trials_text) parts.unshift(job.trials_text);
  if (job.ended && job.ended_at) {
    parts.push(job.started_at ? `ran for ${span(job.ended_at - job.started_at)}` : "never started");
    parts.push(`ended at ${clock(job.ended_at)}`);
  } else if (job.started_at) {
    parts.push(`runs for ${span(now() - job.started_at)}`);
    if (job.ends_by) parts.push(`${span(job.ends_by - now())} of its time limit left`);
  } else {
    parts.push(`waits for ${span(now() - job.submitted_at)}`, `time limit ${span(job.seconds)}`);
  }
  if (job.attempt > 1) parts.push(`attempt ${job.attempt}`);
  return parts.join(" · ");
}

function news(job, progress) {
  const cause = job.ended && job.cause ? ` ${job.cause.message}` : "";
  const cell = !job.ended && progress.current ? ` Cell ${progress.current} of ${progress.total}.` : "";
  return `${job.title}: ${job.state_name}.${cause}${cell}`;
}

// The explanation of a queued job, below a heading that opens it.
function whyBelow(model) {
  const more = make("details", { class: "carrel-more carrel-why" }, make("summary", {}, "Why, and what would help"));
  const why = whyTold(model, () => (model.get("job") || {}).id, () => more.open && !more.hidden,
    () => Boolean(((model.get("job") || {}).expected || []).length));
  more.append(why.node);
  more.addEventListener("toggle", why.refresh);
  return { node: more, stop: why.stop };
}

// Functions that the job has accelerated, with the lines that prevent it.
function compilationsShown() {
  const list = make("ul", {});
  const node = make("details", { class: "carrel-more", hidden: true }, make("summary", {}, "Accelerated functions"), list);
  const line = (each) => make("li", {}, `${each.place} `, make("code", {}, each.source), `: ${each.reason}. ${each.rewrite}`);
  const draw = whenChanged((found) => {
    show(node, found.length > 0);
    list.replaceChildren(...found.map((each) => make("li", {},
      make("code", {}, each.function), ` ${each.place}: ${each.outcome}`,
      ...(each.obstacles.length ? [make("ul", {}, ...each.obstacles.map(line))] : []))));
  });
  return { node, draw };
}

// Title, state, facts, reason of the wait, and links.
function drawHead(part, more, job, link) {
  text(part.title, job.title);
  text(part.state, job.state_name);
  part.state.className = `carrel-state carrel-state-${job.state}`;
  part.state.title = job.meaning;
  text(part.id, job.id);
  text(part.facts, facts(job));
  show(part.wait, Boolean(job.wait));
  show(more, Boolean(job.wait));
  if (job.wait) text(part.wait, `${job.wait.sentence} ${dated(job.expected)}`.trim());
  part.page.href = `${link}requests/${encodeURIComponent(job.id)}`;
}

function drawStep(part, job, step) {
  keepRoom(part.step.parentNode, Boolean(step), job.ended);
  if (step) { drawBar(part.stepBar, step.done, step.of, stepWords(step)); text(part.step, stepWords(step)); }
}

// Why it ended, or is about to end.
function drawCause(part, job) {
  const cause = job.cause;
  const warned = !cause && job.warning;
  const signs = cause || job.ended ? [] : job.signs || [];
  show(part.cause, Boolean(warned || cause || signs.length));
  part.cause.classList.toggle("carrel-warned", Boolean(warned || signs.length));
  const found = signs.length && !warned ? [...signs, "The job goes on."] : signs;
  const stops = warned ? [`It is stopped at ${clock(warned.stops_at)} (in ${span(warned.stops_at - now())}). ${warned.message}`] : [];
  if (warned || found.length) text(part.cause, [...stops, ...found].join(" "));
  part.cause.classList.toggle("carrel-bad", job.state === "failed" || job.state === "timed_out");
  if (cause) text(part.cause, cause.message);
  show(part.more, Boolean(cause && cause.details));
  if (cause) text(part.details, cause.details || "");
}
