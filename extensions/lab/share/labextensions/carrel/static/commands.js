// The commands of Carrel, for menus, the command palette, the toolbar of notebooks and the panel.
import { saveDocuments } from "./documents.js";
import { openOutput } from "./job_output.js";
import { opens, readAll } from "./site.js";
import { submitInDialog } from "./submit_dialog.js";

export const COMMANDS = {
  submit: "carrel:submit-notebook",
  check: "carrel:check",
  official: "carrel:official-check",
  handIn: "carrel:hand-in",
  fetch: "carrel:fetch-assignment",
  output: "carrel:open-job-output",
  extend: "carrel:extend-session",
  stop: "carrel:stop-session",
  panel: "carrel:open-panel",
  desk: "carrel:open-desk",
  help: "carrel:help",
};

// Show anew what commands of the current notebook are of use; buttons in toolbars listen to each id.
export const notebookChanged = (commands) => {
  for (const id of [COMMANDS.submit, COMMANDS.check, COMMANDS.official, COMMANDS.handIn]) commands.notifyCommandChanged(id);
};

export const addCommands = (libraries, { site, desk, coursework }, services) => {
  const { apputils } = libraries;
  const { Dialog, InputDialog, Notification, showDialog } = apputils;
  const { app, documents, tracker, browsers, labShell, panel } = services;
  const { commands } = app;
  const running = new Set();

  // Add a command whose error is shown as a notification, and that runs once at a time.
  const add = (id, action, options) => {
    commands.addCommand(id, {
      describedBy: { args: { type: "object", properties: {} } },
      ...options,
      execute: async (args) => {
        const key = JSON.stringify([id, args.path, args.assignment, args.job]);
        if (running.has(key)) return;
        running.add(key);
        try {
          await action(args);
        } catch (error) {
          const { message } = error;
          Notification.error(message, { autoClose: false, actions: readAll(apputils, "Not done", message) });
        } finally {
          running.delete(key);
        }
      },
    });
  };

  const current = () => (tracker && tracker.currentWidget ? tracker.currentWidget.context : null);
  const selected = () => {
    const browser = browsers && browsers.tracker.currentWidget;
    const item = browser && [...browser.selectedItems()].find((each) => each.type === "notebook");
    return item ? documents.services.contents.localPath(item.path) : "";
  };
  const pathOf = (args) => args.path || (args.selected ? selected() : current() ? current().localPath : "");

  const submit = async (args) => {
    const path = pathOf(args);
    if (!path) throw new Error("Open the notebook that shall run as a job, then try again.");
    const { failed } = await saveDocuments(app, documents, (each) => each === path);
    if (failed.length) return; // The application shows the reason in its own dialog.
    const made = await submitInDialog(libraries, site, path, Boolean(args.continues));
    if (!made) return;
    Notification.success([`Submitted as job ${made.id}.`, ...made.notes].join(" "), {
      autoClose: 10000,
      actions: [opens("Show it", site.requestPage(made.id))],
    });
    desk.refresh();
  };

  const extend = async () => {
    const { session, summary } = desk;
    if (!session) throw new Error("The time limit of this session is not known yet. Try again in a moment.");
    await site.act("extend", { seen_seconds: session.seconds });
    Notification.success(`The session has ${summary.extension} more.`, { autoClose: 5000 });
    desk.refresh();
  };

  const stop = async () => {
    const answer = await showDialog({
      title: "Stop this session?",
      body: "Open documents are saved first. Running cells end, and variables are lost. Your files stay, and the devices are free for others.",
      buttons: [Dialog.cancelButton(), Dialog.warnButton({ label: "Stop the session" })],
      defaultButton: 0,
    });
    if (!answer.button.accept) return;
    const { failed } = await saveDocuments(app, documents);
    if (failed.length) {
      throw new Error(`Not saved: ${failed.join(", ")}. The session was not stopped.`);
    }
    await site.act("stop");
    desk.stop();
    window.location.assign(site.page("hub/home"));
  };

  // Let the user choose one of these; returns null if the user gives up.
  const choose = async (found, text, options) => {
    const answer = await InputDialog.getItem({ ...options, items: found.map(text) });
    return answer.button.accept ? found.find((each) => text(each) === answer.value) : null;
  };

  const chooseAssignment = async () => {
    const { assignments } = await site.read("courses");
    if (!assignments.length) throw new Error("No assignment has been released to you yet.");
    return choose(assignments, (each) => `${each.name} of ${each.course}`, {
      title: "Fetch an assignment",
      label: "Your work is kept: a newer version is merged into it.",
      okLabel: "Fetch",
    });
  };

  const chooseJob = async () => {
    const { jobs } = await site.read("desk");
    const found = jobs.filter((each) => each.has_output);
    if (!found.length) throw new Error("None of your newest jobs has an output notebook.");
    return choose(found, (each) => `${each.title} (${each.id}), ${each.state}`, {
      title: "Open the output of a job",
      label: "It is copied into your home; no file is overwritten.",
      okLabel: "Open",
    });
  };

  const fetch = async (args) => {
    const found = args.assignment ? { course: args.course, name: args.assignment } : await chooseAssignment();
    if (found) await coursework.fetch(found.course, found.name, Boolean(args.missing));
  };

  const open = async (args) => {
    const found = args.job ? { id: args.job } : await chooseJob();
    if (found) await openOutput(libraries, site, app, found.id, 0);
  };

  const onAssignment = (args, action) => {
    const path = pathOf(args);
    if (!path) throw new Error("Open a notebook of the assignment, then try again.");
    return action(path);
  };

  const hasNotebook = (args) => Boolean(args.path || args.selected || current());
  const ofAssignment = (args) => Boolean(args.path) || (current() !== null && coursework.mayBelong(current().localPath));
  // In a toolbar and a context menu, only where it is of use.
  const isVisible = (args) => !(args.toolbar || args.menu) || (current() !== null && coursework.belongs(current().localPath));
  const openPanel = () => panel && labShell.activateById(panel.id);

  add(COMMANDS.submit, submit, {
    label: (args) => (args.toolbar ? "Run as job" : "Run Notebook as Job…"),
    caption: "Submit this notebook as a job, which runs without this session",
    isEnabled: hasNotebook,
  });
  add(
    COMMANDS.check,
    (args) =>
      onAssignment(args, async (path) => {
        openPanel();
        await coursework.check(path);
      }),
    {
      label: (args) => (args.toolbar ? "Check" : "Check Assignment"),
      caption: "Run the visible tests on your saved work, as grading does",
      isEnabled: ofAssignment,
      isVisible,
    },
  );
  add(
    COMMANDS.official,
    (args) =>
      onAssignment(args, async (path) => {
        openPanel();
        await coursework.checkOfficially(path);
      }),
    {
      label: "Official Check of Assignment…",
      caption: "Run all tests on your saved work, hidden ones included, as often on one day as your teacher allows",
      isEnabled: ofAssignment,
      isVisible,
    },
  );
  add(COMMANDS.handIn, (args) => onAssignment(args, (path) => coursework.handIn(path)), {
    label: (args) => (args.toolbar ? "Hand in" : "Hand In Assignment"),
    caption: "Submit your saved work; you can submit again until the due date",
    isEnabled: ofAssignment,
    isVisible,
  });
  add(COMMANDS.fetch, fetch, { label: "Fetch Assignment…", caption: "Copy an assignment into your home" });
  add(COMMANDS.output, open, { label: "Open Output of Job…", caption: "Copy the executed notebook into your home" });
  add(COMMANDS.extend, extend, {
    label: () => (desk.summary ? `Extend Session by ${desk.summary.extension}` : "Extend Session"),
  });
  add(COMMANDS.stop, stop, { label: "Stop Session…" });
  add(COMMANDS.panel, openPanel, {
    label: (args) => (args.isLauncher ? "Carrel" : "Show Carrel Panel"),
    caption: "Show your sessions, jobs and assignments",
    icon: panel ? panel.title.icon : undefined,
    isVisible: () => Boolean(panel),
  });
  const page = (url) => () => void window.open(url, "_blank", "noopener");
  add(COMMANDS.desk, page(site.page("hub/home")), { label: "My Desk" });
  add(COMMANDS.help, page(site.servicePage("help/")), { label: "Carrel Help" });
  if (tracker) tracker.currentChanged.connect(() => notebookChanged(commands));
  notebookChanged(commands); // toolbars were drawn before the commands existed
  const named = () => {
    if (!desk.summary) return;
    desk.changed.disconnect(named);
    commands.notifyCommandChanged(COMMANDS.extend); // its label says by how much
  };
  desk.changed.connect(named);
};
