// View of a sweep: its trials as a table, curve and parallel coordinates; buttons stop a trial, or the sweep.

const HEADS = { before: ["Trial"], middle: ["State", "Time"], after: ["Message"] };

// The table keeps its rows and their buttons, so that the focus stays where it is.
function trialTable(stop) {
  const head = make("tr", {});
  const body = make("tbody", {});
  const table = make("table", { class: "carrel-table" }, make("thead", {}, head), body);
  const node = make("div", { class: "carrel-scroll carrel-trials", tabindex: 0, role: "region", "aria-label": "Trials" }, table);
  const rows = new Map();
  const asked = new Set();

  const newRow = (number) => {
    const button = make("button", { type: "button", class: "carrel-button carrel-danger carrel-stop", "aria-label": `Stop trial ${number}` }, "Stop");
    button.addEventListener("click", () => {
      if (asked.has(number)) return;
      asked.add(number);
      stop(number);
      drawButton(number, true);
    });
    const state = make("span", {});
    return { node: make("tr", {}), state, cell: make("td", {}, state, " ", button), button, shown: "" };
  };
  // A button that was pressed keeps the focus: it is not disabled.
  const drawButton = (number, may) => {
    const { button } = rows.get(number);
    if (!may) asked.delete(number);
    show(button, may);
    text(button, asked.has(number) ? "Stopping …" : "Stop");
    button.setAttribute("aria-disabled", String(asked.has(number)));
  };
  const drawRow = (trial, link, live) => {
    const row = rows.get(trial.number);
    const wanted = JSON.stringify([trial, link]);
    if (row.shown !== wanted) {
      row.shown = wanted;
      const name = trial.notebook ? make("a", { href: `${link}${trial.number}`, target: "_blank", rel: "noopener" }, String(trial.number)) : String(trial.number);
      const best = trial.best ? make("span", { class: "carrel-mark" }, "best") : "";
      text(row.state, trial.state);
      const before = [make("th", { scope: "row" }, name, " ", best), ...trial.values.map((each) => make("td", {}, each))];
      const after = [make("td", {}, trial.seconds), ...trial.reported.map((each) => make("td", {}, each)), make("td", { class: "carrel-message" }, trial.message)];
      while (row.node.firstChild && row.node.firstChild !== row.cell) row.node.firstChild.remove();
      while (row.node.lastChild && row.node.lastChild !== row.cell) row.node.lastChild.remove();
      if (!row.cell.parentNode) row.node.append(row.cell);
      row.cell.before(...before);
      row.cell.after(...after);
      row.node.classList.toggle("carrel-mine", trial.best);
    }
    drawButton(trial.number, trial.may_stop && live);
    return row.node;
  };
  return {
    node,
    allow: () => asked.clear(),
    draw: (sweep, link, live) => {
      const names = [...HEADS.before, ...sweep.parameters, ...HEADS.middle, ...sweep.names, ...HEADS.after];
      if (head.textContent !== names.join("")) head.replaceChildren(...names.map((each) => make("th", { scope: "col" }, each)));
      const focused = document.activeElement;
      const wanted = new Set(sweep.rows.map((trial) => trial.number));
      for (const [number, row] of rows) if (!wanted.has(number)) { row.node.remove(); rows.delete(number); }
      sweep.rows.forEach((trial, at) => {
        if (!rows.has(trial.number)) rows.set(trial.number, newRow(trial.number));
        const row = drawRow(trial, link, live);
        if (body.children[at] !== row) body.insertBefore(row, body.children[at] || null);
      });
      if (focused !== document.activeElement && node.contains(focused)) focused.focus();
    },
  };
}

// Fetched when it is opened first.
function sharingBelow(model) {
  const pre = make("pre", { class: "carrel-log carrel-tree", tabindex: 0, role: "region", "aria-label": "What trials share" }, "The notebook is being analysed …");
  const node = make("details", { class: "carrel-more" }, make("summary", {}, "What trials share"), pre);
  node.addEventListener("toggle", () => { if (node.open && !model.get("sharing")) model.send({ do: "sharing" }); });
  const draw = () => { if (model.get("sharing")) text(pre, model.get("sharing")); };
  model.on("change:sharing", draw);
  draw();
  return { node, stop: () => model.off("change:sharing", draw) };
}

function sweepNews(job, sweep) {
  const cause = job.ended && job.cause ? ` ${job.cause.message}` : "";
  const best = sweep && sweep.best ? ` The best trial is ${sweep.best}: ${sweep.objective}.` : "";
  return `${job.title}: ${job.state_name}.${cause}${best}`;
}

function render({ model, el }) {
  const outer = frame(model, el, "sweep");
  const part = jobParts("sweep");
  const why = whyBelow(model);
  const [curves, coordinates] = [curvesShown(), parallelShown()];
  const summary = make("p", {});
  const notes = make("div", { class: "carrel-soft" });
  const table = make("a", { class: "carrel-link", download: true }, "CSV");
  const sharing = sharingBelow(model);
  const trials = trialTable((number) => model.send({ do: "stop", number }));
  outer.body.append(
    make("div", { class: "carrel-head" }, part.title, part.state, part.id),
    part.facts, part.wait, why.node,
    make("div", { class: "carrel-line", hidden: true }, part.stepBar, part.step),
    part.cause,
    make("div", { class: "carrel-actions" }, part.cancel, part.page, table, part.sure),
    part.refused, part.more, summary, notes, curves.node, coordinates.node, trials.node, sharing.node,
  );
  const cancel = confirmation(model, part);

  const draw = () => {
    const [job, sweep] = [model.get("job"), model.get("sweep")];
    outer.body.classList.toggle("carrel-empty", !job);
    if (!job) return;
    const link = model.get("service");
    drawHead(part, why.node, job, link);
    drawStep(part, job, model.get("progress").step);
    drawCause(part, job);
    table.href = `${link}requests/${encodeURIComponent(job.id)}/trials.csv`;
    cancel.draw();
    outer.say(sweepNews(job, sweep));
  };
  const drawTrials = () => {
    const [job, sweep] = [model.get("job"), model.get("sweep")];
    show(trials.node, Boolean(job && sweep));
    if (!job || !sweep) return;
    text(summary, `${sweep.summary}${sweep.best ? ` The best one is trial ${sweep.best}: ${sweep.objective}.` : ""}`);
    notes.replaceChildren(...sweep.notes.map((each) => make("p", {}, each)));
    curves.draw(sweep.curves);
    coordinates.draw(sweep.parallel);
    const notebook = `${model.get("service")}requests/${encodeURIComponent(job.id)}/notebook?trial=`;
    trials.draw(sweep, notebook, job.state === "running");
  };
  const refused = () => { trials.allow(); drawTrials(); };
  model.on("change:refused", refused);
  const stops = [
    follow(model, ["job", "progress", "service", "asked", "refused"], draw, 1, outer),
    follow(model, ["sweep", "job", "service"], drawTrials, 0, outer),
    outer.stop,
    cancel.stop,
    why.stop,
    sharing.stop,
    () => model.off("change:refused", refused),
  ];
  return () => stops.forEach((stop) => stop());
}

export default { render };
