// Warns users of JupyterLab and Notebook 7 before their session is stopped, saves their documents,
// offers the device that is held for them, and links to the desk. output_replay.js, beside this
// file, shows the outputs of cells that ran while no page was open.
//
// A federated extension written by hand: the application gets the module "./extension" from the
// container below, and shares its own libraries through the share scope, so that no build is needed.
"use strict";
(() => {
  const STANDING = "carrel/standing";
  const KEEP = "carrel/keep";
  const CLAIM = "carrel/claim";
  const GIVE_UP = "carrel/give-up";
  const CONTINUE = "carrel/continue";
  const AGAIN_MS = 5000;

  const HERE = document.currentScript.src;

  let shared = {};
  // Return the application's own copy of a library.
  const use = async (name) => {
    const offers = Object.values(shared[name] || {});
    const offer = offers.find((each) => each.loaded) || offers[0];
    if (!offer) throw new Error(`Carrel: the application does not share ${name}.`);
    return (await offer.get())();
  };

  const left = (seconds) => {
    const s = Math.max(0, Math.round(seconds));
    if (s >= 60) return `${Math.round(s / 60)} min`;
    return `${s} s`;
  };

  const request = ({ services: { ServerConnection }, coreutils: { URLExt } }, settings) => (path, init) =>
    ServerConnection.makeRequest(URLExt.join(settings.baseUrl, path), init, settings);

  const activate = (libraries) => (app, documents, tracker) => {
    const { InputDialog, Notification, Dialog, showDialog } = libraries.apputils;
    const ask = request(libraries, app.serviceManager.serverSettings);

    const nothing = { warning: null, held: null, shown: "" };
    let now = nothing;
    let notification = "";
    let timer = 0;
    let savedFor = "";
    let recovering = false;

    // All open documents with changes, in visible tabs or not.
    const save = async () => {
      const contexts = new Set();
      for (const widget of app.shell.widgets("main")) {
        const context = documents.contextForWidget(widget);
        if (context && context.model.dirty && !context.model.readOnly) contexts.add(context);
      }
      const failed = [];
      for (const context of contexts) {
        try {
          await context.save();
        } catch {
          // JupyterLab shows the reason in its own dialog; continue with the other documents.
          failed.push(context.path);
        }
      }
      return { saved: contexts.size - failed.length, failed };
    };

    const saveOnce = async (occasion) => {
      if (savedFor === occasion) return;
      savedFor = occasion;
      const { saved, failed } = await save();
      if (failed.length) {
        Notification.error(`Not saved: ${failed.join(", ")}`, { autoClose: false });
      } else if (saved) {
        Notification.info(saved === 1 ? "1 document was saved." : `${saved} documents were saved.`);
      }
    };

    // Return whether it was done; say why not.
    const act = async (path, otherwise) => {
      const answer = await ask(path, { method: "POST" });
      if (answer.ok) return true;
      // A proxy's error page is not JSON: then there is no message to show.
      const said = await answer.json().catch(() => ({}));
      Notification.error(said.message || otherwise, { autoClose: 10000 });
      return false;
    };

    const keep = () => act(KEEP, "The session could not be kept.");

    const claim = async (held) => {
      const name = held.server_name || "default session";
      if (!(await act(`${CLAIM}?request=${encodeURIComponent(held.request_id)}`, "The device could not be claimed."))) return;
      const open = {
        label: "Open it",
        displayType: "accent",
        callback: () => window.open(sitePage(libraries, `services/carrel/wait/${encodeURIComponent(held.server_name) || "-"}`), "_blank", "noopener"),
      };
      Notification.success(`Claimed: the session ${name} is starting.`, { autoClose: false, actions: [open] });
    };

    const giveUp = async (held) => {
      const answer = await showDialog({
        title: "Give up the device?",
        body: "It is released without being used, and your place in the queue is lost.",
        buttons: [Dialog.cancelButton({ label: "Hold it" }), Dialog.warnButton({ label: "Give up" })],
      });
      if (answer.button.accept) await act(`${GIVE_UP}?request=${encodeURIComponent(held.request_id)}`, "The device could not be given up.");
    };

    // Submit the current notebook, as it is now, as a job that outlives this session.
    const continueAsJob = async () => {
      const context = tracker && tracker.currentWidget && tracker.currentWidget.context;
      if (!context) {
        Notification.error("Open the notebook that shall run as a job, then try again.", { autoClose: 10000 });
        return;
      }
      const answer = await InputDialog.getText({
        title: `Continue ${context.path} as a job`,
        label: "The job runs the saved notebook from its first cell, with the group, devices and image of this session. Variables of this session are not carried over. Time limit:",
        text: "2h",
        okLabel: "Submit the job",
      });
      if (!answer.button.accept) return;
      try {
        if (context.model.dirty) await context.save();
      } catch {
        return; // JupyterLab shows the reason in its own dialog.
      }
      const reply = await ask(CONTINUE, { method: "POST", body: JSON.stringify({ path: context.path, time: answer.value }) });
      const said = await reply.json().catch(() => ({}));
      if (!reply.ok) {
        Notification.error(said.message || "The job could not be submitted.", { autoClose: false });
        return;
      }
      const open = {
        label: "Show it",
        displayType: "accent",
        callback: () => window.open(sitePage(libraries, `services/carrel/requests/${encodeURIComponent(said.id)}`), "_blank", "noopener"),
      };
      Notification.success(`Submitted as job ${said.id}.`, { autoClose: false, actions: [open] });
    };

    const explain = (seen) => {
      const list = document.createElement("ul");
      for (const sentence of seen) list.appendChild(document.createElement("li")).textContent = sentence;
      const body = new libraries.widgets.Widget({ node: list });
      void showDialog({ title: "What was seen", body, buttons: [Dialog.okButton()] });
    };

    // The notification stays open: what is done shows in the next status.
    const button = (label, act, displayType = "default") => ({
      label,
      displayType,
      callback: (event) => { event.preventDefault(); void act(); },
    });

    const warningText = (warning) => {
      const end = `It is stopped in ${left(warning.stops_at - Date.now() / 1000)}`;
      return warning.final ? `${end}. ${warning.message}` : `${warning.message} ${end} unless something runs.`;
    };

    const tell = () => {
      const { warning, held, shown } = now;
      const ends = shown === "held" ? held.claim_by : warning.stops_at;
      const seconds = ends - Date.now() / 1000;
      const parts = [];
      const actions = [];
      if (shown === "warning") {
        parts.push(warningText(warning));
        if (warning.final && tracker) actions.push(button("Continue as a job", continueAsJob));
        if (warning.can_keep) actions.push(button("Keep it", keep, "accent"));
        if (warning.seen.length) actions.push(button("What was seen", () => explain(warning.seen)));
      }
      if (held) {
        // Also below a warning that acts first: the device would be lost silently.
        parts.push(held.message);
        if (shown === "held") parts.push(`Time left: ${left(seconds)}.`);
        actions.push(button("Claim", () => claim(held), "accent"), button("Give up", () => giveUp(held)));
      }
      const message = parts.join(" ");
      const type = shown === "held" ? "info" : "warning";
      const options = { autoClose: false, actions };
      if (notification && Notification.manager.has(notification)) {
        Notification.update({ id: notification, message, type, ...options });
      } else {
        notification = Notification.emit(message, type, options);
      }
      // Screen readers read each change: every minute, and more often towards the end.
      const pause = seconds > 90 ? 60 : seconds > 20 ? 10 : 5;
      timer = setTimeout(tell, pause * 1000);
    };

    const over = () => {
      clearTimeout(timer);
      if (notification && Notification.manager.has(notification)) Notification.dismiss(notification);
      notification = "";
    };

    const tellEnd = (before) => {
      const at = Date.now() / 1000;
      if (before.warning && !now.warning && at < before.warning.stops_at) {
        Notification.success("The warning was withdrawn: this session continues.", { autoClose: 10000 });
      }
      const lost = before.held && before.held.request_id !== (now.held || {}).request_id;
      if (lost && at >= before.held.claim_by - 1) {
        Notification.warning("The device was not claimed in time. It was released.", { autoClose: false });
      }
    };

    const receive = (said) => {
      const before = now;
      const { warning = null, held = null, shown = "" } = said;
      now = { warning, held, shown: shown || (warning ? "warning" : "") };
      if (said.recovery && !recovering) {
        recovering = true;
        Notification.error(said.recovery, { autoClose: false });
      }
      if (JSON.stringify(now) !== JSON.stringify(before)) {
        over();
        if (now.shown) tell();
        tellEnd(before);
      }
      if (!now.warning) return;
      void saveOnce(`${said.save ? "last call" : "warned"} ${now.warning.stops_at}`);
    };

    const follow = async () => {
      const answer = await ask(STANDING, {});
      // Another server, or one that is not on a lease: there is no status.
      if (answer.status === 404) return false;
      if (!answer.ok || !answer.body) return true;
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return true;
        const lines = (rest + value).split("\n");
        rest = lines.pop();
        for (const line of lines) if (line) receive(JSON.parse(line));
      }
    };

    const run = async () => {
      let more = true;
      while (more) {
        try {
          more = await follow();
        } catch {
          // The stream was cut, or a line is not JSON: the server is away for a moment, or for good.
          more = true;
        }
        await new Promise((done) => setTimeout(done, AGAIN_MS));
      }
    };
    wayBack(libraries, app.shell);
    void app.restored.then(run);
  };

  // The URL of a page of the site, which may be below a path of another proxy.
  const sitePage = ({ coreutils: { PageConfig, URLExt } }, path) => {
    const hub = PageConfig.getOption("hubPrefix");
    return PageConfig.getOption("hubHost") + URLExt.join(hub.replace(/hub\/?$/, ""), path);
  };

  // The hub's home is the desk. It opens in a new tab, so that open documents stay open.
  const wayBack = (libraries, shell) => {
    const { coreutils: { PageConfig }, widgets } = libraries;
    if (!PageConfig.getOption("hubPrefix")) return;
    const link = document.createElement("a");
    link.href = sitePage(libraries, "hub/home");
    link.target = "_blank";
    link.rel = "noopener";
    link.textContent = "Desk";
    link.title = "Carrel's desk: sessions, jobs and the queue";
    link.style.cssText = "align-self: center; flex: none; padding: 0 12px; color: var(--jp-ui-font-color1);";
    const widget = new widgets.Widget({ node: link });
    widget.id = "carrel-desk";
    shell.add(widget, "top", { rank: 10000 });
  };

  const extension = async () => {
    const [apputils, services, coreutils, docmanager, widgets, notebook, outputarea, json, replay] = await Promise.all([
      use("@jupyterlab/apputils"),
      use("@jupyterlab/services"),
      use("@jupyterlab/coreutils"),
      use("@jupyterlab/docmanager"),
      use("@lumino/widgets"),
      use("@jupyterlab/notebook"),
      use("@jupyterlab/outputarea"),
      use("@lumino/coreutils"),
      // Without it the warnings still work.
      import(new URL("output_replay.js", HERE)).catch((error) => console.error("Carrel:", error)),
    ]);
    const libraries = { apputils, services, coreutils, widgets };
    const idle = {
      id: "carrel:idle",
      description: "Tells when the session is about to be stopped, and when a device is held for its user.",
      autoStart: true,
      requires: [docmanager.IDocumentManager],
      optional: [notebook.INotebookTracker],
      activate: activate(libraries),
    };
    const outputs = {
      id: "carrel:outputs",
      description: "Shows the outputs of cells that ran while no page was open.",
      autoStart: true,
      optional: [notebook.INotebookTracker],
      activate: (app, tracker) => {
        const ask = request(libraries, app.serviceManager.serverSettings);
        if (tracker && replay) replay.replayOutputs({ apputils, widgets, outputarea, json }, tracker, ask);
      },
    };
    return { __esModule: true, default: [idle, outputs] };
  };

  window._JUPYTERLAB = window._JUPYTERLAB || {};
  window._JUPYTERLAB.carrel = {
    init: (scope) => {
      shared = scope;
    },
    get: async (name) => {
      if (name !== "./extension") throw new Error(`Carrel has no module ${name}.`);
      const made = await extension();
      return () => made;
    },
  };
})();
