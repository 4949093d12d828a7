// The plugins of Carrel, and the libraries of the application that they use.
import { replayOutputs } from "./output_replay.js";
import { activateDesk } from "./desk.js";
import { activateNotices } from "./session_notices.js";
import { Site } from "./site.js";

const LIBRARIES = {
  application: "@jupyterlab/application",
  apputils: "@jupyterlab/apputils",
  coreutils: "@jupyterlab/coreutils",
  docmanager: "@jupyterlab/docmanager",
  filebrowser: "@jupyterlab/filebrowser",
  json: "@lumino/coreutils",
  launcher: "@jupyterlab/launcher",
  notebook: "@jupyterlab/notebook",
  outputarea: "@jupyterlab/outputarea",
  polling: "@lumino/polling",
  react: "react",
  services: "@jupyterlab/services",
  signaling: "@lumino/signaling",
  statusbar: "@jupyterlab/statusbar",
  ui: "@jupyterlab/ui-components",
  widgets: "@lumino/widgets",
};

// What only JupyterLab has is missing in Notebook.
const libraries = async (use) => {
  const found = await Promise.all(Object.values(LIBRARIES).map(use));
  return Object.fromEntries(Object.keys(LIBRARIES).map((key, at) => [key, found[at]]));
};

export const plugins = async (use) => {
  const found = await libraries(use);
  const { application, apputils, docmanager, filebrowser, launcher, notebook, statusbar } = found;
  const site = (app) => new Site(found, app.serviceManager.serverSettings);
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
      activate: (app, documents, tracker) => activateNotices(found, site(app), { app, documents, tracker }),
    },
    {
      id: "carrel:outputs",
      description: "Shows the outputs of cells that ran while no page was open.",
      autoStart: true,
      optional: [notebook.INotebookTracker],
      activate: (app, tracker) => {
        const { ask } = site(app);
        if (tracker) replayOutputs(found, tracker, ask);
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
        activateDesk(found, site(app), { app, documents, ...services });
      },
    },
  ];
};
