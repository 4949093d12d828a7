// Set light or dark before the first paint: the choice stored by JupyterHub, else that of the system.
"use strict";
(() => {
  const script = document.currentScript.src;
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const stored = () => {
    try {
      return localStorage.getItem("jupyterhub-bs-theme");
    } catch {
      return null;
    }
  };
  const wanted = () => {
    const choice = stored();
    return choice === "light" || choice === "dark" ? choice : dark.matches ? "dark" : "light";
  };
  // Frames have no scripts: the service reads the theme from this cookie when it renders them.
  const updateFrames = () => {
    const value = `carrel-theme=${wanted()}`;
    if (document.cookie.split("; ").includes(value)) return;
    document.cookie = `${value}; path=${new URL("..", script).pathname}; max-age=31536000; samesite=lax`;
    for (const frame of document.querySelectorAll("iframe.frame")) {
      frame.setAttribute("src", frame.getAttribute("src"));
    }
  };
  const apply = () => {
    document.documentElement.dataset.bsTheme = wanted();
    updateFrames();
    const toggle = document.getElementById("theme-toggle");
    if (toggle) {
      toggle.hidden = false;
      toggle.textContent = wanted() === "dark" ? "Light" : "Dark";
    }
  };
  apply();
  dark.addEventListener("change", apply);
  document.addEventListener("DOMContentLoaded", () => {
    apply();
    document.getElementById("theme-toggle").addEventListener("click", () => {
      try {
        localStorage.setItem("jupyterhub-bs-theme", wanted() === "dark" ? "light" : "dark");
      } catch {
        return;
      }
      apply();
    });
  });
})();
