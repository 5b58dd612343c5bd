// Browsers allow no workers in a page that was opened from a folder: there the search runs in a hidden frame instead.
// Material for MkDocs looks for the name IFrameWorker to learn that it does.
"use strict";

window.IFrameWorker = class extends EventTarget {
  #frame = document.createElement("iframe");
  #loaded;

  constructor(url) {
    super();
    this.#frame.hidden = true;
    document.body.append(this.#frame);
    const inside = this.#frame.contentWindow;
    inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
    inside.importScripts = async (...scripts) => {
      for (const script of scripts) await this.#load(script);
    };
    inside.addEventListener("error", ({ error, message }) => {
      this.dispatchEvent(new ErrorEvent("error", { error, message }));
    });
    this.#loaded = this.#load(url);
  }

  #load(url) {
    return new Promise((resolve, reject) => {
      const script = this.#frame.contentDocument.createElement("script");
      Object.assign(script, { src: url, onload: resolve, onerror: reject });
      this.#frame.contentDocument.body.append(script);
    });
  }

  async postMessage(data) {
    await this.#loaded;
    this.#frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }));
  }

  terminate() {
    this.#frame.remove();
  }
};

if (location.protocol === "file:") window.Worker = window.IFrameWorker;
