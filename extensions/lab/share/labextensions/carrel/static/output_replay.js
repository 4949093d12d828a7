// Shows in an open notebook what its cells put out while no page was open.
//
// The server keeps the outputs of each kernel in a journal (output_journal.py). Executions that
// another page asked for are put into the open document and followed until they end; those of this
// page reach it without the journal. A finished execution is reported when a saved document has it,
// and the journal forgets it.
const JOURNAL = "carrel/journal";
const FOLLOW_MS = 3000;
const SOON_MS = 200;
const OUTPUTS = ["stream", "display_data", "execute_result", "error"];

const size = (bytes) => {
  if (bytes < 1024) return `${bytes} bytes`;
  const kib = bytes / 1024;
  return kib < 1024 ? `${kib.toFixed(0)} KiB` : `${(kib / 1024).toFixed(1)} MiB`;
};

const leftOut = ({ bytes, messages }) => {
  const what = messages === 1 ? "1 output" : `${messages} outputs`;
  return `[Carrel left out ${what}${bytes ? ` (${size(bytes)})` : ""} here.]\n`;
};

// An output model that takes journal entries as JupyterLab's output area takes messages.
class Shown {
  constructor(model) {
    this.model = model;
    this.displays = new Map();
    this.changed = (_, change) => {
      if (change.type === "clear") this.displays.clear();
    };
    model.changed.connect(this.changed);
  }

  add({ type, content }) {
    const name = (content.transient || {}).display_id;
    if (OUTPUTS.includes(type)) {
      this.model.add({ ...content, output_type: type });
      if (name && type === "display_data") {
        this.displays.set(name, [...(this.displays.get(name) || []), this.model.length - 1]);
      }
    } else if (type === "clear_output") {
      this.model.clear(Boolean(content.wait));
    } else if (type === "update_display_data") {
      for (const place of this.displays.get(name) || []) {
        if (place < this.model.length) this.model.set(place, { ...content, output_type: "display_data" });
      }
    } else if (type === "left_out") {
      this.model.add({ output_type: "stream", name: "stderr", text: leftOut(content) });
    }
  }

  release() {
    if (!this.model.isDisposed) this.model.changed.disconnect(this.changed);
  }
}

// One execution of another page, in its cell of this document.
class Adopted {
  constructor(execution) {
    this.request = execution.request;
    this.cellId = execution.cell;
    this.ended = false;
    // All entries, until the document differs from them.
    this.entries = [];
    this.shown = null;
  }

  release() {
    if (this.shown) this.shown.release();
    this.shown = null;
  }
}

class Replay {
  constructor(libraries, context, kernel, ask, notice) {
    this.libraries = libraries;
    this.context = context;
    this.kernel = kernel;
    this.ask = ask;
    this.notice = notice;
    this.adopted = new Map();
    // Executions without a cell in this document.
    this.homeless = new Map();
    // Finished executions that the document shows.
    this.finished = new Set();
    this.saving = [];
    this.after = -1;
    this.epoch = "";
    this.timer = 0;
    this.fetching = false;
    this.over = false;
    kernel.iopubMessage.connect(this.hear, this);
    kernel.anyMessage.connect(this.pass, this);
    context.saveState.connect(this.save, this);
  }

  dispose() {
    this.over = true;
    clearTimeout(this.timer);
    this.kernel.iopubMessage.disconnect(this.hear, this);
    this.kernel.anyMessage.disconnect(this.pass, this);
    this.context.saveState.disconnect(this.save, this);
    for (const each of this.adopted.values()) each.release();
    this.adopted.clear();
  }

  cell(id) {
    for (const cell of this.context.model.cells) {
      if (cell.id === id) return cell.type === "code" ? cell : null;
    }
    return null;
  }

  // Messages that this page sends: a cell that it runs is its own from then on.
  pass(_, { msg, direction }) {
    if (direction !== "send" || msg.header.msg_type !== "execute_request") return;
    const id = (msg.metadata || {}).cellId;
    for (const each of this.adopted.values()) if (each.cellId === id) this.forget(each);
  }

  // Messages of the kernel, after JupyterLab has shown those of this page.
  hear(_, message) {
    const parent = message.parent_header || {};
    if (this.adopted.has(parent.msg_id)) this.follow(SOON_MS);
    const ends = message.header.msg_type === "status" && message.content.execution_state === "idle";
    if (ends && parent.msg_type === "execute_request" && parent.session === this.kernel.clientId) {
      this.finished.add(parent.msg_id);
    }
  }

  save(_, state) {
    if (state === "started") {
      const ended = [...this.adopted.values()].filter((each) => each.ended);
      this.saving = [...this.finished, ...ended.map((each) => each.request)];
    } else if (state === "completed" && this.saving.length) {
      void this.report(this.saving);
      this.saving = [];
    }
  }

  async report(requests) {
    const body = JSON.stringify({ requests });
    const answer = await this.ask(`${JOURNAL}/${this.kernel.id}/saved`, { method: "POST", body }).catch(() => null);
    if (!answer || !answer.ok) return; // with the next save
    for (const request of requests) {
      this.finished.delete(request);
      if (this.adopted.has(request)) this.forget(this.adopted.get(request));
    }
  }

  forget(each) {
    each.release();
    this.adopted.delete(each.request);
  }

  follow(pause) {
    if (this.over || (this.timer && pause > SOON_MS)) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.read(), pause);
  }

  async read() {
    this.timer = 0;
    if (this.fetching || this.over) return;
    this.fetching = true;
    const first = this.after < 0;
    try {
      const query = `after=${this.after}&notebook=${encodeURIComponent(this.context.localPath)}`;
      const answer = await this.ask(`${JOURNAL}/${this.kernel.id}?${query}`, {});
      // Not a session of Carrel, or the kernel is gone.
      if (answer.status === 404) return this.stop();
      if (answer.ok && !this.over) this.take(await answer.json(), first);
    } catch (error) {
      // The server is away for a moment.
      if (!(error instanceof TypeError) && error.name !== "NetworkError") console.warn("Carrel: outputs are not read", error);
    } finally {
      this.fetching = false;
    }
    const waits = [...this.adopted.values()].some((each) => !each.ended);
    if (this.after < 0 || waits) this.follow(FOLLOW_MS);
  }

  stop() {
    for (const each of [...this.adopted.values()]) this.drop(each);
  }

  drop(each) {
    const cell = each.ended ? null : this.cell(each.cellId);
    this.forget(each);
    if (cell && cell.executionState === "running") this.quietly(false, () => { cell.executionState = "idle"; });
  }

  take(said, first) {
    if (this.over || this.context.isDisposed) return;
    this.after = said.seq;
    const kept = new Set(said.requests);
    for (const each of [...this.adopted.values()]) if (!kept.has(each.request)) this.drop(each);
    for (const execution of said.executions) {
      if (execution.client === this.kernel.clientId) continue;
      let each = this.adopted.get(execution.request);
      if (!each && first) {
        if (!this.cell(execution.cell)) {
          if (execution.in_notebook && execution.entries.length) this.homeless.set(execution.request, execution);
          continue;
        }
        each = new Adopted(execution);
        this.adopted.set(each.request, each);
      }
      // The page that asked shows it itself, and saves it.
      if (each) this.quietly(execution.live, () => this.show(each, execution));
    }
    if (first && this.homeless.size) this.notice(this);
  }

  // Change the document; whether it is marked as changed is left as it is, if the change is not its own.
  quietly(unmarked, change) {
    const { model } = this.context;
    const before = model.dirty;
    change();
    if (unmarked && !before) model.dirty = false;
  }

  show(each, { entries, whole, state, count, lost }) {
    const cell = this.cell(each.cellId);
    if (!cell) return this.forget(each);
    const more = lost && whole ? [{ type: "left_out", content: { bytes: 0, messages: lost } }] : [];
    const news = [...entries, ...more];
    if (whole) {
      each.release();
      each.entries = [];
    }
    if (each.shown) {
      for (const entry of news) each.shown.add(entry);
    } else {
      each.entries.push(...news);
      const begun = count !== null || each.entries.length;
      if (begun && !this.same(each.entries, cell.outputs)) {
        const { sharedModel } = cell;
        sharedModel.transact(() => cell.clearExecution(), false, "silent-change");
        each.shown = new Shown(cell.outputs);
        for (const entry of each.entries) each.shown.add(entry);
        each.entries = [];
      }
    }
    each.ended = state === "ended";
    if (each.ended) {
      if (count !== null && cell.executionCount !== count) cell.executionCount = count;
      if (cell.executionState !== "idle") cell.executionState = "idle";
    } else if (cell.executionState !== "running") {
      cell.executionState = "running";
    }
  }

  outputs(entries) {
    const model = new this.libraries.outputarea.OutputAreaModel({ trusted: true });
    const shown = new Shown(model);
    for (const entry of entries) shown.add(entry);
    return model;
  }

  same(entries, outputs) {
    const model = this.outputs(entries);
    const same = this.libraries.json.JSONExt.deepEqual(model.toJSON(), outputs.toJSON());
    model.dispose();
    return same;
  }

  // Put the homeless outputs into new cells at the end.
  insert() {
    const cells = [...this.homeless.values()].map((execution) => {
      const model = this.outputs(execution.entries);
      const outputs = model.toJSON();
      model.dispose();
      return {
        cell_type: "code",
        source: execution.code,
        outputs,
        execution_count: execution.count,
        metadata: { trusted: true },
      };
    });
    const { sharedModel } = this.context.model;
    sharedModel.insertCells(sharedModel.cells.length, cells);
    for (const request of this.homeless.keys()) this.finished.add(request);
    this.homeless.clear();
  }

  discard() {
    void this.report([...this.homeless.keys()]);
    this.homeless.clear();
  }
}

const show = async (libraries, panel, replay) => {
  const { Dialog, showDialog } = libraries.apputils;
  const { Panel, Widget } = libraries.widgets;
  const { SimplifiedOutputArea } = libraries.outputarea;
  const body = new Panel();
  body.node.style.cssText = "overflow: auto; max-height: 60vh; min-width: min(40em, 80vw);";
  for (const execution of replay.homeless.values()) {
    const code = document.createElement("pre");
    code.textContent = execution.code;
    code.style.cssText = "margin: 12px 0 4px; padding: 4px 8px; overflow: auto; background: var(--jp-layout-color2);";
    body.addWidget(new Widget({ node: code }));
    body.addWidget(new SimplifiedOutputArea({ model: replay.outputs(execution.entries), rendermime: panel.content.rendermime }));
  }
  const buttons = [
    Dialog.cancelButton({ label: "Close" }),
    Dialog.warnButton({ label: "Discard", actions: ["discard"] }),
    Dialog.okButton({ label: "Add to the notebook", actions: ["insert"] }),
  ];
  const { button } = await showDialog({ title: "Output of cells that are not in this notebook", body, buttons });
  if (button.actions.includes("discard")) replay.discard();
  if (button.actions.includes("insert")) replay.insert();
};

const noticeOf = (libraries, panel) => (replay) => {
  const { Notification } = libraries.apputils;
  const count = replay.homeless.size;
  const cells = count === 1 ? "A cell that is not in this notebook has" : `${count} cells that are not in this notebook have`;
  const message = `${cells} run, and the output was kept: ${replay.context.localPath}`;
  const action = { label: "Show", displayType: "accent", callback: () => void show(libraries, panel, replay) };
  Notification.warning(message, { autoClose: false, actions: [action] });
};

const watch = async (libraries, panel, ask) => {
  const { context } = panel;
  await context.ready;
  // With real-time collaboration, the server's own document has the outputs.
  if (context.isDisposed || context.model.collaborative) return;
  const { sessionContext } = context;
  let replay = null;
  const attach = () => {
    const kernel = sessionContext.session && sessionContext.session.kernel;
    if (replay && replay.kernel === kernel) return;
    if (replay) replay.dispose();
    replay = kernel ? new Replay(libraries, context, kernel, ask, noticeOf(libraries, panel)) : null;
    if (replay) void replay.read();
  };
  sessionContext.kernelChanged.connect(attach);
  context.disposed.connect(() => replay && replay.dispose());
  attach();
};

export const replayOutputs = (libraries, tracker, ask) => {
  // Two views of a notebook have one document.
  const known = new WeakSet();
  const add = (_, panel) => {
    if (known.has(panel.context)) return;
    known.add(panel.context);
    void watch(libraries, panel, ask);
  };
  tracker.forEach((panel) => add(tracker, panel));
  tracker.widgetAdded.connect(add);
};
