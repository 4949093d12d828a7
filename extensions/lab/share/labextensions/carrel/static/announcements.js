// Shows the current announcements of the site as notifications. An announcement that the user
// dismisses is closed for this user on all pages, as with the banners of the site.
import { readAll } from "./site.js";

const REFRESH_MS = 300_000;
const SLOWEST_MS = 1_800_000;
const TYPES = { info: "info", warning: "warning", urgent: "error" };

export const showAnnouncements = ({ apputils, polling: { Poll } }, site) => {
  const { Notification } = apputils;
  const { manager } = Notification;
  // Ids of notifications by ids of announcements.
  const shown = new Map();

  const show = ({ id, text, level }) => {
    const close = { label: "Do not show again", displayType: "default", callback: () => manager.dismiss(shown.get(id)) };
    const actions = [...readAll(apputils, "Announcement", text), close];
    shown.set(id, Notification.emit(text, TYPES[level], { autoClose: false, actions }));
  };

  const withdraw = (id) => {
    const notification = shown.get(id);
    shown.delete(id); // so that it does not count as closed by the user
    manager.dismiss(notification);
  };

  const refresh = async () => {
    let announcements;
    try {
      ({ announcements } = await site.read("announcements"));
    } catch (error) {
      if (error.status === 404) void poll.stop(); // not a session of Carrel
      throw error;
    }
    const current = new Set(announcements.map(({ id }) => id));
    for (const id of [...shown.keys()]) if (!current.has(id)) withdraw(id);
    for (const each of announcements) if (!shown.has(each.id)) show(each);
  };

  manager.changed.connect((_, { type, notification }) => {
    if (type !== "removed") return;
    for (const [id, its] of shown) if (its === notification.id) void site.act("close-announcement", { id }).catch(() => {});
  });

  const poll = new Poll({
    auto: false,
    name: "carrel:announcements",
    factory: refresh,
    standby: "when-hidden",
    frequency: { interval: REFRESH_MS, backoff: true, max: SLOWEST_MS },
  });
  void poll.start();
};
