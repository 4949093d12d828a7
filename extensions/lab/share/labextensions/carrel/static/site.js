// Calls of the session's server, and addresses of the pages of the site.

// The answer to a call that was refused: the sentence to show, and the field that caused it.
export class Refusal extends Error {
  constructor(status, { message = "", field = "" }) {
    // A proxy's error page is not JSON: then there is no message to show.
    super(message || "The session's server did not answer. Try again in a moment.");
    this.status = status;
    this.field = field;
  }
}

export class Site {
  constructor({ services: { ServerConnection }, coreutils: { PageConfig, URLExt } }, settings) {
    this.pageConfig = PageConfig;
    this.join = URLExt.join;
    this.ask = (path, init) => ServerConnection.makeRequest(URLExt.join(settings.baseUrl, path), init, settings);
  }

  // Read what an operation of panel_handlers.py answers.
  read(operation, query = {}) {
    return this.call(`carrel/panel/${operation}?${new URLSearchParams(query)}`, {});
  }

  // Do what an operation of panel_handlers.py does.
  act(operation, body = {}) {
    return this.call(`carrel/panel/${operation}`, { method: "POST", body: JSON.stringify(body) });
  }

  async call(path, init) {
    const answer = await this.ask(path, init).catch(() => null);
    if (!answer) throw new Refusal(0, {});
    const said = await answer.json().catch(() => ({}));
    if (!answer.ok) throw new Refusal(answer.status, said);
    return said;
  }

  // The URL of a page of the site, which may be below a path of another proxy.
  page(path) {
    const hub = this.pageConfig.getOption("hubPrefix");
    return this.pageConfig.getOption("hubHost") + this.join(hub.replace(/hub\/?$/, ""), path);
  }

  // The URL of a page of the Carrel service.
  servicePage(path) {
    return this.page(`services/carrel/${path}`);
  }

  requestPage(id) {
    return this.servicePage(`requests/${encodeURIComponent(id)}`);
  }

  // The URL of a folder in Notebook.
  treePage(folder) {
    return this.join(this.pageConfig.getBaseUrl(), "tree", ...folder.split("/").map(encodeURIComponent));
  }

  waitPage(server) {
    return this.servicePage(`wait/${encodeURIComponent(server) || "-"}`);
  }
}

// A button of a notification that opens a page in a new tab, so that open documents stay open.
export const opens = (label, url) => ({
  label,
  displayType: "accent",
  callback: () => window.open(url, "_blank", "noopener"),
});

// The application cuts the text of longer notifications.
const MOST_CHARACTERS = 140;

// The buttons of a notification by which a long text can be read; none for a short one.
export const readAll = ({ Dialog, showDialog }, title, text) => {
  if (text.length <= MOST_CHARACTERS) return [];
  const callback = (event) => {
    event.preventDefault(); // the notification stays
    void showDialog({ title, body: text, buttons: [Dialog.okButton()] });
  };
  return [{ label: "Read all", displayType: "default", callback }];
};

// Time left, as pages of the site write it.
export const left = (seconds) => {
  const s = Math.max(0, Math.round(seconds));
  if (s < 60) return `${s} s`;
  const minutes = Math.round(s / 60);
  if (minutes < 60) return `${minutes} min`;
  const rest = minutes % 60;
  return `${Math.floor(minutes / 60)} h${rest ? ` ${rest} min` : ""}`;
};
