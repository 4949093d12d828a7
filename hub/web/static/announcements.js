// Banners of administrators: fetch them on pages of JupyterHub and from time to time, and close
// them without leaving the page.
"use strict";
(() => {
  const REFRESH_MS = 300000;
  const place = document.querySelector("[data-announcements]");
  if (!place) return;

  async function refresh() {
    try {
      const answer = await fetch(place.dataset.announcements);
      if (answer.ok) place.innerHTML = await answer.text();
    } catch {
      // The service restarts: keep what is shown.
    }
  }

  place.addEventListener("submit", async (event) => {
    const form = event.target;
    if (!form.matches("[data-close]")) return;
    event.preventDefault();
    try {
      const answer = await fetch(form.action, {
        method: "POST",
        body: new URLSearchParams(new FormData(form)),
        redirect: "manual",
      });
      // "manual" hides the status of the redirect after a success.
      if (answer.type === "opaqueredirect" || answer.ok) form.closest("section").remove();
    } catch {
      // Keep it, so that the user can try again.
    }
  });

  if ("fetch" in place.dataset) refresh();
  setInterval(refresh, REFRESH_MS);
})();
