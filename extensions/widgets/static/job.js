// View of one job: cells, queue position or devices, reported values, log, end, and a button that cancels it.

function render({ model, el }) {
  const outer = frame(model, el, "job");
  const part = jobParts("job");
  const why = whyBelow(model);
  const curves = curvesShown();
  const compilations = compilationsShown();
  outer.body.append(
    make("div", { class: "carrel-head" }, part.title, part.state, part.id),
    part.facts, part.wait, why.node,
    make("div", { class: "carrel-line" }, part.bar, part.count),
    part.remaining, part.cells,
    make("div", { class: "carrel-line", hidden: true }, part.stepBar, part.step),
    part.cause,
    make("div", { class: "carrel-actions" }, part.cancel, part.page, part.output, part.sure),
    part.refused, part.more, curves.node, compilations.node, part.tail, // growing parts below the buttons
  );
  const cancel = confirmation(model, part);

  const draw = () => {
    const job = model.get("job");
    outer.body.classList.toggle("carrel-empty", !job);
    if (!job) return;
    const [progress, cells] = [model.get("progress"), model.get("cells")];
    const link = model.get("service");
    drawHead(part, why.node, job, link);
    const words = progressWords(job, progress, cells);
    show(part.bar.parentNode, Boolean(progress.total));
    drawBar(part.bar, progress.done, progress.total, words);
    text(part.count, words);
    const remaining = job.state === "running" ? job.remaining || "" : "";
    text(part.remaining, remaining);
    show(part.remaining, Boolean(remaining));
    drawCells(part.cells, cells, progress.total);
    drawStep(part, job, progress.step);
    drawCause(part, job);
    part.output.href = `${link}api/v1/requests/${encodeURIComponent(job.id)}/output`;
    text(part.output, job.ended ? "Output notebook" : "Output notebook so far");
    show(part.output, job.has_output);
    cancel.draw();
    outer.say(news(job, progress));
  };
  let atEnd = true; // until the user scrolls up
  const toEnd = () => { if (atEnd) part.log.scrollTop = part.log.scrollHeight; };
  part.log.addEventListener("scroll", () => {
    atEnd = part.log.scrollHeight - part.log.scrollTop - part.log.clientHeight < 8;
  });
  const sized = new ResizeObserver(toEnd); // it has no height until it is on the page
  sized.observe(part.log);
  const drawLog = () => {
    const printed = model.get("log");
    text(part.log, printed);
    show(part.tail, Boolean(printed));
    toEnd();
  };
  const stops = [
    follow(model, ["job", "cells", "progress", "service", "asked", "refused"], draw, 1, outer),
    follow(model, ["log"], drawLog, 0, outer),
    follow(model, ["reports"], () => curves.draw(model.get("reports")), 0, outer),
    follow(model, ["compilations"], () => compilations.draw(model.get("compilations")), 0, outer),
    outer.stop,
    cancel.stop,
    why.stop,
    () => sized.disconnect(),
  ];
  return () => stops.forEach((stop) => stop());
}

export default { render };
