// The plugins of Carrel. JupyterLab waits for this module before it starts, and for the plugins
// before it shows its layout: all that can wait is imported after that.
const HERE = import.meta.url;
const PANEL = "carrel-panel";
const ICON =
  '<svg xmlns="http://www.w3.org/2000/svg" width="16" height="16" viewBox="0 0 16 16"><path class="jp-icon3" fill="#616161" d="M1 2h2v7h10V2h2v12h-2v-3H3v3H1zm4 1h6v4H5z"/></svg>';

// Libraries whose tokens name what plugins need.
const TOKENS = {
  application: "@jupyterlab/application",
  apputils: "@jupyterlab/apputils",
  docmanager: "@jupyterlab/docmanager",
  filebrowser: "@jupyterlab/filebrowser",
  launcher: "@jupyterlab/launcher",
  notebook: "@jupyterlab/notebook",
  statusbar: "@jupyterlab/statusbar",
  ui: "@jupyterlab/ui-components",
  widgets: "@lumino/widgets",
};
const LIBRARIES = {
  ...TOKENS,
  coreutils: "@jupyterlab/coreutils",
  json: "@lumino/coreutils",
  outputarea: "@jupyterlab/outputarea",
  polling: "@lumino/polling",
  react: "react",
  services: "@jupyterlab/services",
  signaling: "@lumino/signaling",
};

// A document whose restoration hangs keeps the application from ever being ready: Carrel does not
// wait for it longer than this.
const LATEST_MS = 15000;
const afterMs = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// Notebook does not have all of them: what is missing is null.
const load = async (use, names) => {
  const found = await Promise.all(Object.values(names).map(use));
  return Object.fromEntries(Object.keys(names).map((key, at) => [key, found[at]]));
};

// An empty panel, so that JupyterLab can restore the side bar; desk.js fills it.
const emptyPanel = ({ ui: { LabIcon }, widgets: { Panel } }) => {
  const panel = new Panel();
  panel.id = PANEL;
  panel.addClass("carrel-panel");
  panel.title.icon = new LabIcon({ name: "carrel:desk", svgstr: ICON });
  panel.title.caption = "Carrel: sessions, jobs and assignments";
  panel.node.setAttribute("role", "region");
  panel.node.setAttribute("aria-label", "Carrel");
  return panel;
};

export const plugins = async (use) => {
  const tokens = await load(use, TOKENS);
  const { application, apputils, docmanager, filebrowser, launcher, notebook, statusbar } = tokens;

  // Call a function of a module, with the libraries and the site, when the application is ready.
  const later = (app, module, call) => {
    void Promise.race([app.restored, afterMs(LATEST_MS)]).then(async () => {
      const [libraries, found, { Site }] = await Promise.all([
        load(use, LIBRARIES),
        import(new URL(module, HERE)),
        import(new URL("site.js", HERE)),
      ]);
      call(found, libraries, new Site(libraries, app.serviceManager.serverSettings));
    });
  };

  const optional = {
    labShell: application.ILabShell,
    restorer: application.ILayoutRestorer,
    tracker: notebook.INotebookTracker,
    palette: apputils.ICommandPalette,
    browsers: filebrowser && filebrowser.IFileBrowserFactory,
    statusBar: statusbar && statusbar.IStatusBar,
    launcher: launcher && launcher.ILauncher,
  };
  const parts = Object.keys(optional).filter((name) => optional[name]);
  return [
    {
      id: "carrel:idle",
      description: "Tells when the session is about to be stopped, and when a device is held for its user.",
      autoStart: true,
      requires: [docmanager.IDocumentManager],
      optional: [notebook.INotebookTracker],
      activate: (app, documents, tracker) =>
        later(app, "session_notices.js", ({ activateNotices }, libraries, site) =>
          activateNotices(libraries, site, { app, documents, tracker }),
        ),
    },
    {
      id: "carrel:announcements",
      description: "Shows the announcements of the site's administrators.",
      autoStart: true,
      activate: (app) =>
        later(app, "announcements.js", ({ showAnnouncements }, libraries, site) => showAnnouncements(libraries, site)),
    },
    {
      id: "carrel:outputs",
      description: "Shows the outputs of cells that ran while no page was open.",
      autoStart: true,
      optional: [notebook.INotebookTracker],
      activate: (app, tracker) => {
        if (!tracker) return;
        later(app, "output_replay.js", ({ replayOutputs }, libraries, site) => replayOutputs(libraries, tracker, site.ask));
      },
    },
    {
      id: "carrel:desk",
      description: "Sessions, jobs and assignments: a status item, a panel, and commands.",
      autoStart: true,
      requires: [docmanager.IDocumentManager],
      optional: parts.map((name) => optional[name]),
      activate: (app, documents, ...given) => {
        const services = Object.fromEntries(parts.map((name, at) => [name, given[at]]));
        const { labShell, restorer } = services;
        const panel = labShell ? emptyPanel(tokens) : null;
        if (panel) {
          labShell.add(panel, "left", { rank: 450 });
          if (restorer) restorer.add(panel, PANEL);
        }
        // The application changes the address when it is ready.
        const address = window.location.search;
        later(app, "desk.js", ({ activateDesk }, libraries, site) =>
          activateDesk(libraries, site, { app, documents, panel, address, ...services }),
        );
      },
    },
  ];
};
