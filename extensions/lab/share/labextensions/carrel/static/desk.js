// The status item, the panel and the commands of Carrel.
import { openAddress, readAddress } from "./address.js";
import { addCommands, COMMANDS, PANEL } from "./commands.js";
import { Coursework } from "./coursework.js";
import { DeskState } from "./desk_state.js";
import { deskPanel } from "./panel.js";
import { statusItem } from "./status_item.js";

const HERE = import.meta.url;
const ICON =
  '<svg xmlns="http://www.w3.org/2000/svg" width="16" height="16" viewBox="0 0 16 16"><path class="jp-icon3" fill="#616161" d="M1 2h2v7h10V2h2v12h-2v-3H3v3H1zm4 1h6v4H5z"/></svg>';

const addStyle = () => {
  const link = document.createElement("link");
  link.rel = "stylesheet";
  link.href = new URL("style.css", HERE).href;
  document.head.append(link);
};

// The hub's home is the desk. It opens in a new tab, so that open documents stay open.
const addDeskLink = ({ widgets: { Widget } }, site, shell) => {
  const link = document.createElement("a");
  link.href = site.page("hub/home");
  link.target = "_blank";
  link.rel = "noopener";
  link.textContent = "Desk";
  link.title = "Carrel's desk: sessions, jobs and the queue";
  link.className = "carrel-desk-link";
  const widget = new Widget({ node: link });
  widget.id = "carrel-desk";
  shell.add(widget, "top", { rank: 10000 });
};

export const activateDesk = (libraries, site, services) => {
  const { app, labShell, restorer, palette, launcher, statusBar } = services;
  if (!libraries.coreutils.PageConfig.getOption("hubPrefix")) return;
  const { Notification } = libraries.apputils;
  const wanted = readAddress();
  addStyle();
  addDeskLink(libraries, site, app.shell);
  const icon = new libraries.ui.LabIcon({ name: "carrel:desk", svgstr: ICON });
  const desk = new DeskState(libraries, site);
  const coursework = new Coursework(libraries, site, desk, services);
  addCommands(libraries, { site, desk, coursework, icon }, services);
  if (labShell) {
    const panel = deskPanel(libraries, { site, desk, coursework, icon }, services);
    labShell.add(panel, "left", { rank: 450 });
    if (restorer) restorer.add(panel, PANEL);
  }
  if (statusBar) {
    statusBar.registerStatusItem("carrel:status", {
      item: statusItem(libraries, desk, () => app.commands.execute(COMMANDS.panel)),
      align: "left",
      rank: 10,
    });
  }
  if (palette) {
    for (const command of Object.values(COMMANDS)) palette.addItem({ command, category: "Carrel" });
  }
  if (launcher) launcher.add({ command: COMMANDS.panel, category: "Other", rank: 10 });
  void app.restored.then(async () => {
    await desk.start();
    await openAddress(wanted, site, coursework, Notification).catch((error) => {
      Notification.error(error.message, { autoClose: false });
    });
  });
};
