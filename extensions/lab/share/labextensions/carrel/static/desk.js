// The status item, the panel and the commands of Carrel.
import { openAddress, readAddress } from "./address.js";
import { addCommands, COMMANDS } from "./commands.js";
import { Coursework } from "./coursework.js";
import { DeskState } from "./desk_state.js";
import { panelContent } from "./panel.js";
import { statusItem } from "./status_item.js";

const HERE = import.meta.url;

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
  const { app, panel, palette, launcher, statusBar } = services;
  const { Notification } = libraries.apputils;
  addStyle();
  addDeskLink(libraries, site, app.shell);
  const desk = new DeskState(libraries, site);
  const coursework = new Coursework(libraries, site, desk, services);
  addCommands(libraries, { site, desk, coursework }, services);
  if (panel) panel.addWidget(panelContent(libraries, { site, desk, coursework }, services));
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
  if (launcher) launcher.add({ command: COMMANDS.panel, args: { isLauncher: true }, category: "Other", rank: 10 });
  void desk.start();
  openAddress(readAddress(services.address), libraries, site, app, coursework).catch((error) => {
    Notification.error(error.message, { autoClose: false });
  });
};
