// Draws the figures of a frame: runs in frames of outputs only, without an origin and a network.
// Such a frame has no cache either: the page around it fetches the library and sends its text.
"use strict";
(() => {
  const { nonce } = document.currentScript;
  const places = [...document.querySelectorAll(".carrel-figure")];
  const fail = (place, why) => {
    place.textContent = `This figure cannot be drawn (${why}). Download the notebook to see it.`;
  };
  const libraryOf = (place) => place.getAttribute("data-library");
  const specification = (place) =>
    JSON.parse(place.querySelector("script[type='application/json']").textContent);
  const draw = {
    plotly: (place, figure) => {
      const target = place.appendChild(document.createElement("div"));
      const { data, layout, frames } = figure;
      target.style.height = layout && layout.height ? "" : "480px";
      const config = { ...figure.config, responsive: true, displaylogo: false };
      return Plotly.newPlot(target, { data, layout, frames, config });
    },
    vega: (place, figure) => {
      const target = place.appendChild(document.createElement("div"));
      return vegaEmbed(target, figure, { actions: false, ast: true, renderer: "svg" });
    },
  };
  const answered = new Set();
  addEventListener("message", async ({ data, source }) => {
    if (source !== parent || !data) return;
    const { ready, library, scripts } = data;
    if (ready) ask(); // the page did not listen yet when this frame asked first
    if (!Object.hasOwn(draw, library) || answered.has(library)) return;
    answered.add(library);
    for (const text of scripts || []) {
      const script = document.createElement("script");
      script.nonce = nonce;
      script.textContent = text;
      document.head.append(script);
    }
    for (const place of places.filter((one) => libraryOf(one) === library)) {
      try {
        if (!scripts) throw new Error("its library could not be loaded");
        await draw[library](place, specification(place));
      } catch (error) {
        fail(place, `${error && error.message}`.slice(0, 500));
      }
    }
  });
  const ask = () => {
    for (const library of new Set(places.map(libraryOf))) {
      if (!answered.has(library)) parent.postMessage({ carrelFigure: library }, "*");
    }
  };
  ask();
})();
