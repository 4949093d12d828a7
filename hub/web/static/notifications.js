// Notify the user that a device is ready: in the title of the page, and by a notification of the
// browser if the user enabled it. The page itself shows it in any case.
"use strict";
(() => {
  const NOTIFIED = "carrel-told";
  const title = document.title;
  let first = true;

  const notified = () => {
    try {
      return new Set(JSON.parse(sessionStorage.getItem(NOTIFIED) || "[]"));
    } catch {
      // No storage, or invalid content: treat everything as new.
      return new Set();
    }
  };
  const remember = (keys) => {
    try {
      sessionStorage.setItem(NOTIFIED, JSON.stringify([...keys].slice(-200)));
    } catch {
      // A repeated notification replaces the first one: it has the same tag.
    }
  };
  const possible = () => "Notification" in window && window.isSecureContext;

  const notify = (key, text) => {
    if (!possible() || Notification.permission !== "granted") return;
    const note = new Notification("Carrel", { body: text, tag: key });
    note.addEventListener("click", () => {
      window.focus();
      note.close();
    });
  };

  // Notify only of changes while the page is open; the user sees the rest when it loads.
  const look = () => {
    const seen = notified();
    for (const element of document.querySelectorAll("[data-notify]")) {
      const { notify: key, say } = element.dataset;
      if (seen.has(key)) continue;
      seen.add(key);
      if (!first) notify(key, say);
    }
    remember(seen);
    first = false;
    const held = document.querySelectorAll("[data-held]").length;
    const wanted = held ? `(${held}) Your device is ready · Carrel` : title;
    if (document.title !== wanted) document.title = wanted;
    const ask = document.getElementById("tell-me");
    if (ask) ask.hidden = !possible() || Notification.permission !== "default";
  };

  // The browser asks once, and only after a click.
  document.addEventListener("click", async (event) => {
    if (!event.target.closest?.("#tell-me")) return;
    const answer = await Notification.requestPermission();
    const announcer = document.getElementById("announcer");
    if (announcer) {
      announcer.textContent =
        answer === "granted"
          ? "Your browser will notify you while this page is open."
          : "Your browser will not notify you, but this page will.";
    }
    look();
  });
  for (const name of ["htmx:afterSwap", "htmx:oobAfterSwap", "htmx:sseMessage"]) {
    document.addEventListener(name, look);
  }
  document.addEventListener("DOMContentLoaded", look);
})();
