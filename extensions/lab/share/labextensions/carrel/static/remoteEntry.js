// Carrel's extension of JupyterLab and Notebook.
//
// A prebuilt extension written by hand: the application gets the module "./extension" from the
// container below, and shares its own libraries through the share scope, so that no build is needed.
// What the extension does is in the modules beside this file, plugins.js first.
"use strict";
(() => {
  const HERE = document.currentScript.src;
  let shared = {};
  // Return the application's own copy of a library; null if it has none.
  const use = async (name) => {
    const offers = Object.values(shared[name] || {});
    const offer = offers.find((each) => each.loaded) || offers[0];
    return offer ? (await offer.get())() : null;
  };
  window._JUPYTERLAB = window._JUPYTERLAB || {};
  window._JUPYTERLAB.carrel = {
    init: (scope) => {
      shared = scope;
    },
    get: async (name) => {
      if (name !== "./extension") throw new Error(`Carrel has no module ${name}.`);
      const { plugins } = await import(new URL("plugins.js", HERE));
      const made = { __esModule: true, default: await plugins(use) };
      return () => made;
    },
  };
})();
