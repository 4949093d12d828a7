// Shows in an open notebook what its cells put out while no page was open.
//
// The server keeps the outputs of each kernel in a journal (output_journal.py). Executions that
// another page asked for are put into the open document and followed until they end; those of this
// page reach it without the journal, unless messages were lost with a connection. A finished
// execution is reported when a saved document has it, and the journal forgets it.
const JOURNAL = "carrel/journal";
const FOLLOW_MS = 3000;
const SOON_MS = 200;
// After so long a connection that is back has brought what the server had buffered for it.
const BACK_MS = 3000;
const OUTPUTS = ["stream", "display_data", "execute_result", "error"];
const SHOWN = [...OUTPUTS, "clear_output", "update_display_data"];

const leftOut = ({ bytes, messages }) => {
  if (!bytes) return `[Carrel left out ${messages === 1 ? "an output" : `${messages} outputs`} here.]\n`;
  const kib = bytes / 1024;
  const size = kib < 1024 ? `${Math.ceil(kib)} KiB` : `${(kib / 1024).toFixed(1)} MiB`;
  return `[Carrel left out ${size} of output here.]\n`;
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

// One execution from the journal, in its cell of this document.
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
  constructor(libraries, panel, kernel, ask) {
    this.libraries = libraries;
    this.panel = panel;
    this.context = panel.context;
    this.kernel = kernel;
    this.ask = ask;
    this.adopted = new Map();
    // Executions whose outputs the document does not take: the cell is gone, or has a newer result.
    this.homeless = new Map();
    this.notification = "";
    // Executions of this page that run: their cell, and how many outputs have reached it.
    this.running = new Map();
    // Finished executions that the document shows.
    this.finished = new Set();
    this.saving = [];
    // Executions to take from the next whole answer; from the first one, all of other pages.
    this.wanted = [];
    this.isFirst = true;
    this.after = -1;
    this.timer = 0;
    this.fetching = false;
    this.over = false;
    this.wasConnected = false;
    kernel.iopubMessage.connect(this.hear, this);
    kernel.anyMessage.connect(this.pass, this);
    kernel.connectionStatusChanged.connect(this.connect, this);
    this.context.saveState.connect(this.save, this);
    this.connect(kernel, kernel.connectionStatus);
  }

  dispose() {
    this.over = true;
    clearTimeout(this.timer);
    this.kernel.iopubMessage.disconnect(this.hear, this);
    this.kernel.anyMessage.disconnect(this.pass, this);
    this.kernel.connectionStatusChanged.disconnect(this.connect, this);
    this.context.saveState.disconnect(this.save, this);
    for (const each of this.adopted.values()) each.release();
    this.adopted.clear();
    this.settleHomeless();
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
    const cellId = (msg.metadata || {}).cellId;
    if (!cellId) return;
    for (const each of [...this.adopted.values()]) if (each.cellId === cellId) this.forget(each);
    for (const [request, mine] of this.running) if (mine.cellId === cellId) this.running.delete(request);
    this.running.set(msg.header.msg_id, { cellId, seen: 0, suspect: false, ended: false });
  }

  // Messages of the kernel, after JupyterLab has shown those of this page.
  hear(_, message) {
    const { msg_id: request } = message.parent_header || {};
    if (this.adopted.has(request)) this.follow(SOON_MS);
    const mine = this.running.get(request);
    if (!mine) return;
    const { msg_type: type } = message.header;
    if (SHOWN.includes(type)) mine.seen += 1;
    if (type === "status" && message.content.execution_state === "idle") {
      mine.ended = true;
      if (!mine.suspect) this.finish(request);
    }
  }

  finish(request) {
    this.running.delete(request);
    this.finished.add(request);
  }

  // What was on its way when a connection broke is lost: take the outputs of such a cell from the journal.
  connect(_, status) {
    if (status !== "connected") return;
    const isBack = this.wasConnected;
    this.wasConnected = true;
    if (isBack && this.running.size) void this.check();
  }

  async check() {
    for (const mine of this.running.values()) mine.suspect = true;
    const suspects = [...this.running.keys()];
    let said = null;
    try {
      const answer = await this.ask(`${JOURNAL}/${this.kernel.id}?after=-1`, {});
      if (answer.ok) said = await answer.json();
    } catch (error) {
      console.warn("Carrel: outputs are not compared", error);
    }
    await new Promise((done) => setTimeout(done, BACK_MS));
    if (this.over) return;
    for (const request of suspects) {
      const mine = this.running.get(request);
      const execution = said && said.executions.find((each) => each.request === request);
      if (!mine) continue;
      mine.suspect = false;
      // The kernel was restarted.
      if (said && !execution) this.running.delete(request);
      if (execution && (mine.seen < execution.heard || (execution.state === "ended" && !mine.ended))) {
        this.takeOver(request, mine);
      } else if (mine.ended) {
        this.finish(request);
      }
    }
  }

  takeOver(request, mine) {
    const widget = this.panel.content.widgets.find((each) => each.model.id === mine.cellId);
    const area = widget && widget.outputArea;
    // It waits for an input that only this future can send.
    if (area && area.pendingInput) return;
    this.running.delete(request);
    // From now on, JupyterLab shows no message of this execution by itself.
    if (area && area.future && area.future.msg.header.msg_id === request) area.future.dispose();
    this.want([request]);
  }

  // Take these executions, those of this page too, from a whole answer.
  want(requests) {
    this.wanted.push(...requests);
    this.after = -1;
    this.follow(0);
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
    if (this.over) return;
    if (this.fetching) return this.follow(SOON_MS);
    this.fetching = true;
    const { after } = this;
    try {
      const query = `after=${after}&notebook=${encodeURIComponent(this.context.localPath)}`;
      const answer = await this.ask(`${JOURNAL}/${this.kernel.id}?${query}`, {});
      // Not a session of Carrel, or the kernel is gone.
      if (answer.status === 404) return this.stop();
      // It may be asked for a whole answer meanwhile.
      if (answer.ok && !this.over && after === this.after) this.take(await answer.json());
    } catch (error) {
      // The server is away for a moment.
      console.warn("Carrel: outputs are not read", error);
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

  take(said) {
    if (this.over || this.context.isDisposed) return;
    const { isFirst, wanted } = this;
    const isTaken = ({ request, client }) => wanted.includes(request) || (isFirst && client !== this.kernel.clientId);
    this.after = said.seq;
    this.isFirst = false;
    this.wanted = [];
    const kept = new Set(said.requests);
    for (const each of [...this.adopted.values()]) if (!kept.has(each.request)) this.drop(each);
    for (const execution of said.executions) {
      let each = this.adopted.get(execution.request);
      if (!each && isTaken(execution)) {
        const cell = this.cell(execution.cell);
        if (!cell || (isFirst && this.isNewer(cell, execution))) {
          if (execution.in_notebook && execution.entries.length) this.homeless.set(execution.request, execution);
          continue;
        }
        each = new Adopted(execution);
        this.adopted.set(each.request, each);
      }
      // A connected page that asked shows it itself, and saves it.
      const isOthers = execution.live && execution.client !== this.kernel.clientId;
      if (each) this.quietly(isOthers, () => this.show(each, execution));
    }
    if (isFirst && this.homeless.size) this.notify();
  }

  // Whether another program saved another result of this cell after the execution.
  isNewer(cell, { ended_at: endedAt, entries }) {
    const saved = Date.parse(this.context.contentsModel.last_modified) / 1000;
    return endedAt !== null && saved > endedAt && cell.executionCount !== null && !this.same(entries, cell.outputs);
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

  // Put back the cells of homeless outputs, at the end; those that have another result are added once more.
  insert() {
    const { sharedModel } = this.context.model;
    const requests = [];
    for (const { request, cell, code, entries, count } of this.homeless.values()) {
      const added = { cell_type: "code", source: code, metadata: { trusted: true } };
      if (this.cell(cell)) {
        const model = this.outputs(entries);
        sharedModel.addCell({ ...added, outputs: model.toJSON(), execution_count: count });
        model.dispose();
        this.finished.add(request);
      } else {
        sharedModel.addCell({ ...added, id: cell, outputs: [] });
        requests.push(request);
      }
    }
    this.settleHomeless();
    this.want(requests);
  }

  settleHomeless() {
    const { manager } = this.libraries.apputils.Notification;
    this.homeless.clear();
    if (this.notification && manager.has(this.notification)) manager.dismiss(this.notification);
    this.notification = "";
  }

  discard() {
    void this.report([...this.homeless.keys()]);
    this.settleHomeless();
  }

  notify() {
    const { Notification } = this.libraries.apputils;
    const count = this.homeless.size;
    const what = count === 1 ? "a cell was kept. The cell is" : `${count} cells was kept. The cells are`;
    const message = `${this.context.localPath}: output of ${what} not in the notebook, or a newer result was saved.`;
    const action = {
      label: "Show",
      displayType: "accent",
      callback: (event) => {
        event.preventDefault(); // the notification stays until they are added or discarded
        void this.showHomeless();
      },
    };
    this.notification = Notification.warning(message, { autoClose: false, actions: [action] });
  }

  async showHomeless() {
    const { Dialog, showDialog } = this.libraries.apputils;
    const { Panel, Widget } = this.libraries.widgets;
    const { SimplifiedOutputArea } = this.libraries.outputarea;
    const { rendermime } = this.panel.content;
    const body = new Panel();
    body.node.style.cssText = "overflow: auto; max-height: 60vh; min-width: min(40em, 80vw);";
    for (const execution of this.homeless.values()) {
      const code = document.createElement("pre");
      code.textContent = execution.code;
      code.style.cssText = "margin: 12px 0 4px; padding: 4px 8px; overflow: auto; background: var(--jp-layout-color2);";
      body.addWidget(new Widget({ node: code }));
      body.addWidget(new SimplifiedOutputArea({ model: this.outputs(execution.entries), rendermime }));
    }
    const buttons = [
      Dialog.cancelButton({ label: "Close" }),
      Dialog.warnButton({ label: "Discard", actions: ["discard"] }),
      Dialog.okButton({ label: "Add to the notebook", actions: ["insert"] }),
    ];
    const { button } = await showDialog({ title: "Output that is not in this notebook", body, buttons });
    if (this.over) return; // the kernel was changed meanwhile
    if (button.actions.includes("discard")) this.discard();
    if (button.actions.includes("insert")) this.insert();
  }
}

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
    replay = kernel ? new Replay(libraries, panel, kernel, ask) : null;
    if (replay) void replay.read();
  };
  sessionContext.kernelChanged.connect(attach);
  // The journal knows the notebook by its path.
  context.pathChanged.connect(() => replay && replay.follow(0));
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
