// Tells when the session is about to be stopped and when a device is held for its user, and saves
// the documents of a session that is about to be stopped.
import { saveDocuments } from "./documents.js";
import { left, opens, readAll } from "./site.js";

const STANDING = "carrel/standing";
const KEEP = "carrel/keep";
const CLAIM = "carrel/claim";
const GIVE_UP = "carrel/give-up";
const SUBMIT = "carrel:submit-notebook";
const EXTEND = "carrel:extend-session";
const AGAIN_MS = 5000;

export const activateNotices = ({ apputils, widgets }, site, { app, documents, tracker }) => {
  const { Notification, Dialog, showDialog } = apputils;
  const nothing = { warning: null, held: null, shown: "" };
  let now = nothing;
  let notification = "";
  let timer = 0;
  let savedFor = "";
  let recovering = false;

  const saveOnce = async (occasion) => {
    if (savedFor === occasion) return;
    savedFor = occasion;
    const { saved, failed } = await saveDocuments(app, documents);
    if (failed.length) {
      Notification.error(`Not saved: ${failed.join(", ")}`, { autoClose: false });
    } else if (saved) {
      Notification.info(saved === 1 ? "1 document was saved." : `${saved} documents were saved.`);
    }
  };

  // Return whether it was done; say why not.
  const act = async (path) => {
    try {
      await site.call(path, { method: "POST" });
      return true;
    } catch (error) {
      Notification.error(error.message, { autoClose: 10000 });
      return false;
    }
  };

  const keep = () => act(KEEP);

  const claim = async (held) => {
    const name = held.server_name || "default session";
    if (!(await act(`${CLAIM}?request=${encodeURIComponent(held.request_id)}`))) return;
    const open = opens("Open it", site.waitPage(held.server_name));
    Notification.success(`Claimed: the session ${name} is starting.`, { autoClose: false, actions: [open] });
  };

  const giveUp = async (held) => {
    const answer = await showDialog({
      title: "Give up the device?",
      body: "It is released without being used, and your place in the queue is lost.",
      buttons: [Dialog.cancelButton({ label: "Hold it" }), Dialog.warnButton({ label: "Give up" })],
    });
    if (answer.button.accept) await act(`${GIVE_UP}?request=${encodeURIComponent(held.request_id)}`);
  };

  const explain = (seen) => {
    const list = document.createElement("ul");
    for (const sentence of seen) list.appendChild(document.createElement("li")).textContent = sentence;
    const body = new widgets.Widget({ node: list });
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
      if (warning.final && tracker) actions.push(button("Continue as a job", () => app.commands.execute(SUBMIT, { continues: true })));
      if (warning.kind === "time_limit") actions.push(button("Extend", () => app.commands.execute(EXTEND), "accent"));
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
    const options = { autoClose: false, actions: [...readAll(apputils, "This session", message), ...actions] };
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
    const answer = await site.ask(STANDING, {});
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
  void app.restored.then(run);
};
