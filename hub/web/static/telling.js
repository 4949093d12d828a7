// Says that a device has come: in the title of the page, and by a notification of the browser for
// whoever asked for one. The page itself shows it in any case.
"use strict";
(() => {
  const TOLD = "carrel-told";
  const title = document.title;
  let first = true;

  const told = () => {
    try {
      return new Set(JSON.parse(sessionStorage.getItem(TOLD) || "[]"));
    } catch {
      // No storage in this browser, or not ours in it: then nothing counts as told.
      return new Set();
    }
  };
  const remember = (keys) => {
    try {
      sessionStorage.setItem(TOLD, JSON.stringify([...keys].slice(-200)));
    } catch {
      // Then it may be told twice, which the browser shows once: the tag is the same.
    }
  };
  const possible = () => "Notification" in window && window.isSecureContext;

  const notify = (key, words) => {
    if (!possible() || Notification.permission !== "granted") return;
    const note = new Notification("Carrel", { body: words, tag: key });
    note.addEventListener("click", () => {
      window.focus();
      note.close();
    });
  };

  // Whoever opens a page sees what is on it: told is only what comes while it is open.
  const look = () => {
    const seen = told();
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
    const said = document.getElementById("announcer");
    if (said) {
      said.textContent =
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
