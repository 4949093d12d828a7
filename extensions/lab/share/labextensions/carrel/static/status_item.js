// The item of the status bar: device, time left and place in the queue of this session.
import { left } from "./site.js";

const textOf = (desk) => {
  const { session, place } = desk;
  if (!session) return "";
  const parts = [session.devices];
  if (session.ends_by !== null) parts.push(`${left(desk.until(session.ends_by))} left`);
  if (place !== null) parts.push(`place ${place} in the queue`);
  return parts.join(" · ");
};

export const statusItem = ({ ui: { ReactWidget, UseSignal }, react: { createElement: h } }, desk, open) => {
  const draw = () => {
    const text = textOf(desk);
    if (!text) return null;
    const label = `Carrel: ${text}. Show your sessions, jobs and assignments.`;
    return h("button", { type: "button", className: "carrel-status", title: label, "aria-label": label, onClick: open }, text);
  };
  const widget = ReactWidget.create(h(UseSignal, { signal: desk.changed }, draw));
  widget.addClass("jp-mod-highlighted");
  return widget;
};
