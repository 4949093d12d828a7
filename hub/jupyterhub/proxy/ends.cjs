// Preloaded into the proxy: close connections in time.
//
// A response whose server died is closed for the browser too. The proxy pipes the response of a
// server into the response to the browser, and Node leaves the target of a pipe open when the
// source is cut off: a page with an event stream would wait for ever. After the close, it
// reconnects.
//
// The proxy reuses idle connections to the service, which closes them after 30 seconds
// (hub/web/app.py). A request sent while the service closes the connection would fail with
// "503 Service Unavailable", so the proxy closes idle connections earlier.
"use strict";
const http = require("node:http");
const { IncomingMessage, ServerResponse } = http;

const IDLE_MILLISECONDS = 20_000;
http.Agent = class extends http.Agent {
  constructor(options) {
    super({ timeout: IDLE_MILLISECONDS, ...options });
  }
};

const pipe = IncomingMessage.prototype.pipe;
IncomingMessage.prototype.pipe = function (target, options) {
  if (target instanceof ServerResponse) {
    this.once("close", () => {
      if (!this.complete) target.destroy();
    });
  }
  return pipe.call(this, target, options);
};
