// Warns users of JupyterLab and Notebook 7 before their session is stopped, saves their documents, and
// links to the desk.
//
// A federated extension written by hand: the application gets the module "./extension" from the
// container below, and shares its own libraries through the share scope, so that no build is needed.
"use strict";
(() => {
  const STANDING = "carrel/standing";
  const KEEP = "carrel/keep";
  const AGAIN_MS = 5000;

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

  const activate = (libraries) => (app, documents) => {
    const { Notification, Dialog, showDialog } = libraries.apputils;
    const { ServerConnection } = libraries.services;
    const { URLExt } = libraries.coreutils;
    const settings = app.serviceManager.serverSettings;
    const ask = (path, init) =>
      ServerConnection.makeRequest(URLExt.join(settings.baseUrl, path), init, settings);

    let warning = null;
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

    const keep = async () => {
      const answer = await ask(KEEP, { method: "POST" });
      if (answer.ok) return;
      // A proxy's error page is not JSON: then there is no message to show.
      const said = await answer.json().catch(() => ({}));
      Notification.error(said.message || "The session could not be kept.", { autoClose: 10000 });
    };

    const explain = () => {
      const list = document.createElement("ul");
      for (const sentence of warning ? warning.seen : []) {
        list.appendChild(document.createElement("li")).textContent = sentence;
      }
      const body = new libraries.widgets.Widget({ node: list });
      void showDialog({ title: "What was seen", body, buttons: [Dialog.okButton()] });
    };

    const tell = () => {
      const seconds = warning.stops_at - Date.now() / 1000;
      const end = `It is stopped in ${left(seconds)}`;
      const message = warning.final ? `${end}. ${warning.message}` : `${warning.message} ${end} unless something runs.`;
      const seen = { label: "What was seen", callback: (event) => { event.preventDefault(); explain(); } };
      const actions = warning.seen.length ? [seen] : [];
      if (warning.can_keep) {
        actions.unshift({
          label: "Keep it",
          displayType: "accent",
          callback: (event) => { event.preventDefault(); void keep(); },
        });
      }
      const options = { autoClose: false, actions };
      if (notification && Notification.manager.has(notification)) {
        Notification.update({ id: notification, message, type: "warning", ...options });
      } else {
        notification = Notification.warning(message, options);
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

    const receive = (said) => {
      const before = warning;
      warning = said.warning;
      if (said.recovery && !recovering) {
        recovering = true;
        Notification.error(said.recovery, { autoClose: false });
      }
      if (!warning) {
        over();
        if (before && Date.now() / 1000 < before.stops_at) {
          Notification.success("The warning was withdrawn: this session continues.", { autoClose: 10000 });
        }
        return;
      }
      if (!before || before.stops_at !== warning.stops_at) {
        over();
        tell();
        void saveOnce(`warned ${warning.stops_at}`);
      }
      if (said.save) void saveOnce(`last call ${warning.stops_at}`);
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

  // The hub's home is the desk. It opens in a new tab, so that open documents stay open.
  const wayBack = ({ coreutils, widgets }, shell) => {
    const { PageConfig, URLExt } = coreutils;
    const hub = PageConfig.getOption("hubPrefix");
    if (!hub) return;
    const link = document.createElement("a");
    link.href = PageConfig.getOption("hubHost") + URLExt.join(hub, "home");
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
    const [apputils, services, coreutils, docmanager, widgets] = await Promise.all([
      use("@jupyterlab/apputils"),
      use("@jupyterlab/services"),
      use("@jupyterlab/coreutils"),
      use("@jupyterlab/docmanager"),
      use("@lumino/widgets"),
    ]);
    return {
      __esModule: true,
      default: {
        id: "carrel:idle",
        description: "Tells when the session is about to be stopped for being idle.",
        autoStart: true,
        requires: [docmanager.IDocumentManager],
        activate: activate({ apputils, services, coreutils, widgets }),
      },
    };
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
