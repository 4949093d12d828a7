// The dialog that submits a notebook as a job.

// Fields of the form by fields of the job, where they differ.
const FIELDS = { seconds: "time" };
const UNITS = [["minutes", "m", 60], ["hours", "h", 3600], ["days", "d", 86400]];

// A duration in the form of the command line; a text with a unit of its own, such as 1h30m, stays.
const duration = (text, unit) => {
  const number = text.trim().replace(",", ".");
  if (!/^[0-9]{1,6}(\.[0-9]{1,6})?$/.test(number)) return text;
  const [, , seconds] = UNITS.find(([, each]) => each === unit);
  return number.includes(".") ? `${Math.round(Number(number) * seconds)}s` : `${number}${unit}`;
};

// The form as the user fills it in: `values` are the entries of an earlier, refused attempt.
const formOf = ({ widgets: { Widget } }, form, values, problem, text) => {
  const node = document.createElement("div");
  node.className = "carrel-form";
  const add = (name, attributes = {}, ...children) => {
    const made = Object.assign(document.createElement(name), attributes);
    made.append(...children);
    return made;
  };
  const inputs = {};
  const field = (key, label, input, help = "", unit = null) => {
    const id = `carrel-form-${key}`;
    input.id = id;
    inputs[key] = input;
    const shown = unit ? add("div", { className: "carrel-pair" }, input, unit) : input;
    node.append(add("label", { htmlFor: id, textContent: label }), shown);
    if (!help) return;
    node.append(add("p", { id: `${id}-help`, className: "carrel-note", textContent: help }));
    input.setAttribute("aria-describedby", `${id}-help`);
  };
  const choice = (options, value) =>
    add("select", {}, ...options.map(([text, key]) => add("option", { value: key, textContent: text, selected: key === value })));

  node.append(add("p", { className: "carrel-note", textContent: text }));
  const wrong = add("p", { className: "carrel-problem", textContent: problem });
  wrong.setAttribute("role", "alert");
  node.append(wrong);
  const groups = form.groups.map((each) => [each.name, each.name]);
  const limits = () => (form.groups.find((each) => each.name === inputs.group.value) || {}).limits;
  field("group", "Group", choice(groups, values.group), "You are in no group that may run jobs.");
  const shown = node.querySelector("#carrel-form-group-help");
  const showLimits = () => { shown.textContent = limits() || shown.textContent; };
  inputs.group.addEventListener("change", showLimits);
  showLimits();
  field(
    "devices",
    "Devices",
    add("input", { type: "number", min: 0, step: 1, value: values.devices }),
    "Whole devices (GPUs); 0 runs on CPU.",
  );
  if (form.models.length) {
    field("model", "Model", choice([["any", ""], ...form.models.map((name) => [name, name])], values.model));
  }
  const unit = choice(UNITS.map(([name, key]) => [name, key]), values.unit);
  unit.setAttribute("aria-label", "Unit of time limit");
  const time = add("input", { type: "text", inputMode: "decimal", value: values.time });
  field("time", "Time limit", time, "The job is stopped then.", unit);
  for (const each of form.parameters || []) {
    const entry = values.parameters[each.name] ?? each.shown;
    const key = `parameter-${each.name}`;
    const input =
      each.type === "yes or no"
        ? choice([["true", "true"], ["false", "false"]], entry)
        : add("input", { type: "text", value: entry, placeholder: each.shown ? "" : each.default });
    field(key, each.name, input, each.help || each.type);
  }
  if (!form.parameters || !form.parameters.length) {
    const note = "The notebook has no cell tagged “parameters”: it runs with the values in its cells.";
    node.append(add("p", { className: "carrel-note", textContent: note }));
  }
  for (const repair of form.repairs) node.append(add("p", { className: "carrel-note", textContent: repair }));
  const widget = new Widget({ node });
  widget.getValue = () => ({
    group: inputs.group.value,
    devices: inputs.devices.value,
    model: inputs.model ? inputs.model.value : "",
    time: inputs.time.value,
    unit: unit.value,
    parameters: Object.fromEntries((form.parameters || []).map(({ name }) => [name, inputs[`parameter-${name}`].value])),
  });
  return widget;
};

const FIRST_CELL = "The job runs the saved notebook from its first cell, also when this session has ended.";
const LEFT_OUT_SHOWN = 8;

// Where a job goes on from the saved state of a notebook, as sentences.
const stateText = ({ name, start, cells, left_out: leftOut, problem }) => {
  const image = "It gets the image of this session.";
  if (!name) return `The job runs the saved notebook from its first cell: ${problem}. ${image}`;
  const where =
    start > cells
      ? "All cells have been executed: the job executes none."
      : `The job goes on from cell ${start} of ${cells} with the variables of this session.`;
  const all = Object.entries(leftOut).map(([variable, reason]) => `${variable} (${reason})`);
  const shown = all.slice(0, LEFT_OUT_SHOWN);
  if (all.length > shown.length) shown.push(`and ${all.length - shown.length} more`);
  const missing = all.length ? ` Not carried over, because they cannot be saved: ${shown.join(", ")}.` : "";
  return `${where}${missing} ${image}`;
};

// Save the variables of the notebook's kernel.
const saveState = async ({ Notification }, site, path) => {
  const waiting = Notification.emit("The variables of the notebook are being saved …", "in-progress", { autoClose: false });
  try {
    return await site.act("save-state", { path });
  } finally {
    Notification.dismiss(waiting);
  }
};

// Ask until the job is submitted or the user gives up; returns the new job, or null.
export const submitInDialog = async (libraries, site, path, continues) => {
  const { Dialog, showDialog } = libraries.apputils;
  const form = await site.read("job-form", { path });
  const name = path.split("/").pop();
  const state = continues ? await saveState(libraries.apputils, site, path) : { name: "" };
  const text = continues ? stateText(state) : FIRST_CELL;
  let values = {
    group: form.group,
    devices: String(form.session_devices),
    model: form.model || "",
    time: "1",
    unit: "h",
    parameters: {},
  };
  let problem = "";
  let focus = "devices";
  for (;;) {
    const answer = await showDialog({
      title: continues ? `Continue ${name} as a job` : `Run ${name} as a job`,
      body: formOf(libraries, form, values, problem, text),
      buttons: [Dialog.cancelButton(), Dialog.okButton({ label: "Submit the job" })],
      focusNodeSelector: `#carrel-form-${CSS.escape(focus)}`,
    });
    if (!answer.button.accept) {
      if (state.name) await site.act("discard-state", { name: state.name });
      return null;
    }
    values = answer.value;
    const { unit, ...given } = values;
    const job = { ...given, time: duration(given.time, unit), model: given.model || null };
    try {
      return await site.act("submit", { ...job, path, continues, state: state.name });
    } catch (error) {
      problem = error.message;
      focus = FIELDS[error.field] || error.field || "devices";
    }
  }
};
