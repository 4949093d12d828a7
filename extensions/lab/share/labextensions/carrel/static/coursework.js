// Fetch, check and hand in assignments.
import { notebookChanged } from "./commands.js";
import { isIn, openDocument, openFolder, saveDocuments } from "./documents.js";
import { opens } from "./site.js";

export class Coursework {
  constructor(libraries, site, desk, { app, documents, tracker, panel }) {
    this.apputils = libraries.apputils;
    this.site = site;
    this.desk = desk;
    this.app = app;
    this.documents = documents;
    this.hasPanel = Boolean(panel);
    // The assignments of open notebooks, by path.
    this.known = new Map();
    if (tracker) {
      tracker.forEach((panel) => void this.learn(panel));
      tracker.widgetAdded.connect((_, panel) => void this.learn(panel));
    }
  }

  async learn(panel) {
    const { context } = panel;
    await context.ready;
    const read = async () => {
      const found = await this.site.read("assignment-of", { path: context.localPath }).catch(() => null);
      if (found) this.known.set(context.localPath, found.assignment ? found : null);
      notebookChanged(this.app.commands);
    };
    context.pathChanged.connect(read);
    await read();
  }

  // Whether an open notebook belongs to an assignment; true as long as that is not known.
  mayBelong(path) {
    return this.known.get(path) !== null;
  }

  belongs(path) {
    return Boolean(this.known.get(path));
  }

  // Fetch an assignment, or only if it is not here; open its first notebook.
  async fetch(course, assignment, missing = false) {
    const { Notification } = this.apputils;
    const fetched = await this.site.act("fetch", { course, assignment, missing });
    for (const note of fetched.notes) Notification.warning(note, { autoClose: false });
    if (fetched.notebook) {
      await openDocument(this.app, fetched.notebook);
    } else {
      await openFolder(this.app, this.site, fetched.folder);
    }
    this.desk.refresh();
  }

  // Save the open documents of the assignment at a path; false if one of them cannot be saved.
  async save(path) {
    const { folder } = await this.site.read("assignment-of", { path });
    const { failed } = await saveDocuments(this.app, this.documents, (each) => each === path || (folder && isIn(each, folder)));
    return !failed.length;
  }

  // Start a check; its result comes in the panel and as a notification.
  async check(path) {
    if (!(await this.save(path))) return;
    const started = await this.site.act("check", { path });
    this.desk.refresh();
    void this.tellResult(started);
  }

  // Run the hidden tests, too, after a question: the runs of a day are limited.
  async checkOfficially(path) {
    const { Dialog, showDialog } = this.apputils;
    const { course, assignment } = await this.site.read("assignment-of", { path });
    if (!assignment) throw new Error("Open a notebook of an assignment that you have fetched, then try again.");
    const { per_day: most, left } = await this.site.read("official-checks", { course, assignment });
    if (most && left) {
      const answer = await showDialog({
        title: `Official check of ${assignment}?`,
        body: `All tests run on your saved work, hidden ones included. You get a verdict and the points; nothing is handed in. Left today: ${left} of ${most}.`,
        buttons: [Dialog.cancelButton(), Dialog.okButton({ label: "Official check" })],
      });
      if (!answer.button.accept) return;
    }
    if (!(await this.save(path))) return;
    const started = await this.site.act("official-check", { path });
    this.desk.refresh();
    void this.tellOfficial(started);
  }

  async tellOfficial(started) {
    const check = await this.desk.followOfficial(started);
    if (!check) return;
    const type = check.outcome === "passed" ? "success" : "warning";
    this.apputils.Notification.emit(`Official check of ${check.assignment}: ${check.sentence}`, type, {
      autoClose: false,
      actions: [opens("Receipt", this.page(check.course, check.assignment))],
    });
    this.desk.refresh();
  }

  async tellResult(started) {
    const check = await this.desk.followCheck(started);
    if (!check) return;
    const type = check.passed ? "success" : "warning";
    // Without the panel, as in Notebook, the results of the cells are on the assignment's page.
    const options = this.hasPanel
      ? { autoClose: 10000 }
      : { autoClose: false, actions: [opens("Show it", this.page(check.course, check.assignment))] };
    this.apputils.Notification.emit(`Check of ${check.assignment}: ${check.sentence}`, type, options);
  }

  async handIn(path) {
    const { Dialog, Notification, showDialog } = this.apputils;
    if (!(await this.save(path))) return;
    let handed;
    try {
      handed = await this.site.act("hand-in", { path });
    } catch (error) {
      if (error.field !== "incomplete") throw error;
      const answer = await showDialog({
        title: "Hand in without it?",
        body: error.message,
        buttons: [Dialog.cancelButton(), Dialog.warnButton({ label: "Hand in as it is" })],
      });
      if (!answer.button.accept) return;
      handed = await this.site.act("hand-in", { path, incomplete: true });
    }
    const { receipt, left_out: leftOut } = handed;
    const rest = leftOut.length ? ` Left out because they are not regular files: ${leftOut.slice(0, 5).join(", ")}.` : "";
    Notification.success(
      `Handed in: submission ${receipt.number} of ${receipt.assignment}. ${receipt.sentence}${rest}`,
      { autoClose: false, actions: [opens("Receipt", this.page(receipt.course, receipt.assignment))] },
    );
    this.desk.refresh();
  }

  page(course, assignment) {
    return this.site.servicePage(`course/${encodeURIComponent(course)}/assignment/${encodeURIComponent(assignment)}`);
  }
}
