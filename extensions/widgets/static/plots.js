// Plots of reported values and of trials: the kernel computes paths and texts, as the pages of the service do.

function drawn(tag, properties, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(properties)) node.setAttribute(name, String(value));
  node.append(...children);
  return node;
}

function curve(found) {
  const caption = make("figcaption", {}, make("strong", {}, found.name), " ", make("span", { class: "carrel-soft" }, found.told));
  if (!found.line) return make("figure", { class: "carrel-plot" }, caption); // a single value
  const scale = make("div", { class: "carrel-plot-scale", "aria-hidden": "true" }, ...found.scale.map((each) => make("span", {}, each)));
  const axis = make("div", { class: "carrel-plot-axis", "aria-hidden": "true" }, ...found.axis.map((each) => make("span", {}, each)));
  const drawing = drawn("svg", { class: "carrel-plot-drawing", viewBox: "0 0 1000 100", preserveAspectRatio: "none", role: "img", "aria-label": found.about, focusable: "false" },
    drawn("path", { class: "carrel-plot-grid", d: "M0 0H1000M0 50H1000M0 100H1000" }),
    drawn("path", { class: "carrel-plot-line", d: found.line }),
    drawn("path", { class: "carrel-plot-dots", d: found.dots }));
  return make("figure", { class: "carrel-plot" }, caption, make("div", { class: "carrel-plot-area" }, scale, drawing, axis));
}

// Draws only what differs from what was drawn before.
function whenChanged(draw) {
  let shown = "";
  return (found) => {
    const wanted = JSON.stringify(found);
    if (wanted === shown) return;
    shown = wanted;
    draw(found);
  };
}

// A place for curves.
function curvesShown() {
  const node = make("div", { class: "carrel-plots", hidden: true });
  const draw = whenChanged((found) => {
    show(node, found.length > 0);
    node.replaceChildren(...found.map(curve));
  });
  return { node, draw };
}

function parallel(found) {
  const [top, bottom] = found.axis;
  const axes = found.axes.flatMap((axis) => [
    drawn("text", { class: "carrel-parallel-name", x: axis.x, y: 14 }, axis.name),
    drawn("text", { class: "carrel-parallel-told", x: axis.x, y: 29 }, axis.told),
    ...axis.ticks.map((tick) => drawn("text", { "text-anchor": axis.anchor, x: axis.tick_x, y: tick.y + 4 }, tick.text)),
  ]);
  return drawn("svg", { class: "carrel-parallel", width: found.width, height: found.height, viewBox: `0 0 ${found.width} ${found.height}`, role: "img", "aria-label": found.about, focusable: "false" },
    drawn("path", { class: "carrel-parallel-lines", d: found.lines }),
    drawn("path", { class: "carrel-parallel-axes", d: found.axes.map((axis) => `M${axis.x} ${top}V${bottom}`).join("") }),
    drawn("path", { class: "carrel-parallel-best", d: found.best }),
    ...found.marks.map(([x, y]) => drawn("circle", { cx: x, cy: y, r: 5 })),
    ...axes);
}

// A place for parallel coordinates; a narrow page scrolls the drawing, and keeps its position.
function parallelShown() {
  const best = make("span", { class: "carrel-key-best" });
  const region = make("div", { class: "carrel-scroll", tabindex: 0, role: "region", "aria-label": "Parameters and objective" });
  const note = make("p", { class: "carrel-soft" });
  const node = make("figure", { class: "carrel-plot", hidden: true },
    make("figcaption", {}, make("strong", {}, "Parameters and objective"), " ", best), region, note);
  const draw = whenChanged((found) => {
    show(node, Boolean(found));
    if (!found) return;
    text(best, `best: trial ${found.number}`);
    region.replaceChildren(parallel(found));
    text(note, found.note);
    show(note, Boolean(found.note));
  });
  return { node, draw };
}
