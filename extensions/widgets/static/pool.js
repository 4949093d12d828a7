// View of the pool: a tile for each device, with the texts and colours of the desk.

function tileOf(tile, link) {
  return make("li", { class: `carrel-tile carrel-tile-${tile.state}${tile.simulated ? " carrel-simulated" : ""}` },
    make("strong", { class: "carrel-tile-state" }, tile.state),
    make("span", {}, tile.model),
    make("span", {}, tile.place),
    tile.simulated ? make("span", { class: "carrel-mark" }, "simulated") : null,
    make("span", {}, tile.meaning),
    tile.request_id
      ? make("a", { href: `${link}requests/${encodeURIComponent(tile.request_id)}`, target: "_blank", rel: "noopener" }, tile.request_id)
      : null);
}

// The next reservations, with the texts of the desk.
function reservedOf(each) {
  return make("li", {}, dated([each]));
}

function render({ model, el }) {
  const outer = frame(model, el, "pool");
  const sentence = make("p", { class: "carrel-facts" });
  const tiles = make("ul", { class: "carrel-tiles", "aria-label": "Devices" });
  const note = make("p", { class: "carrel-soft" }, "Simulated devices can be leased, but they do not compute.");
  const none = make("p", { class: "carrel-soft" }, "The pool has no devices. Sessions and jobs without a device work.");
  const reserved = make("ul", { class: "carrel-soft carrel-reserved", "aria-label": "Reservations" });
  outer.body.append(make("strong", { class: "carrel-title" }, "The pool"), sentence, tiles, reserved, note, none);

  let drawn = "";
  const draw = () => {
    const pool = model.get("pool");
    outer.body.classList.toggle("carrel-empty", !pool);
    if (!pool) return;
    const key = JSON.stringify(pool);
    if (key === drawn) return;
    drawn = key;
    const focused = tiles.contains(document.activeElement) ? document.activeElement.href : null;
    text(sentence, pool.sentence);
    tiles.replaceChildren(...pool.tiles.map((tile) => tileOf(tile, model.get("service"))));
    reserved.replaceChildren(...pool.reserved.map(reservedOf));
    show(reserved, pool.reserved.length > 0);
    show(sentence, pool.tiles.length > 0);
    show(tiles, pool.tiles.length > 0);
    show(note, pool.simulated);
    show(none, pool.tiles.length === 0);
    if (focused) [...tiles.querySelectorAll("a")].find((link) => link.href === focused)?.focus();
    outer.say(pool.sentence);
  };
  const stop = follow(model, ["pool", "service"], draw, 0, outer);
  return () => { stop(); outer.stop(); };
}

export default { render };
