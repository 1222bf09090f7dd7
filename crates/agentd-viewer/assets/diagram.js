// Runs in a frame without an origin (see assets.rs): draws diagrams for the page around it.
"use strict";
const mermaid = globalThis.mermaid ?? globalThis.__esbuild_esm_mermaid_nm?.mermaid?.default;

addEventListener("message", async (event) => {
  // Only the page that holds this frame; what it sends is data either way.
  if (event.source !== parent) return;
  const { id, text, dark } = event.data;
  try {
    mermaid.initialize({
      startOnLoad: false,
      securityLevel: "strict",
      theme: dark ? "dark" : "neutral",
      htmlLabels: false,
      flowchart: { htmlLabels: false, useMaxWidth: false },
      sequence: { useMaxWidth: false },
      state: { useMaxWidth: false },
      class: { useMaxWidth: false, htmlLabels: false },
      er: { useMaxWidth: false },
      gantt: { useMaxWidth: false },
      fontFamily: "Arial, Helvetica, sans-serif",
      suppressErrorRendering: true,
    });
    const { svg } = await mermaid.render(`d${id}`, text);
    parent.postMessage({ id, svg }, "*");
  } catch (error) {
    parent.postMessage({ id, error: String(error?.message ?? error).slice(0, 300) }, "*");
  }
});
parent.postMessage({ ready: true }, "*");
