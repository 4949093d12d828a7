// Loaded into the proxy: an answer whose server died in the middle of it ends for its reader too.
//
// The proxy pipes what a server sends into what a browser reads, and a pipe whose source breaks
// off leaves its target open. A page that listens to a stream of a service that was killed would
// listen for ever; cut off, it connects again by itself.
"use strict";
const { IncomingMessage, ServerResponse } = require("node:http");

const pipe = IncomingMessage.prototype.pipe;
IncomingMessage.prototype.pipe = function (target, options) {
  if (target instanceof ServerResponse) {
    this.once("close", () => {
      if (!this.complete) target.destroy();
    });
  }
  return pipe.call(this, target, options);
};
