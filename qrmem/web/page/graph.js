// Draws a small graph; a list beside it always says the same.

import { make, svg } from "./dom.js";

// A box has no size before it stands on the page, so it is plotted then; what has left the page goes.
const plots = new WeakMap();
const graphs = new Map();

export function plot(within) {
  for (const [box, graph] of graphs) {
    if (!box.isConnected) {
      graphs.delete(box);
      graph.destroy();
    }
  }
  for (const box of within.isConnected ? within.querySelectorAll(".graph:not([data-nodes])") : []) plots.get(box)();
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const graph of graphs.values()) graph.style(style());
});

// From a ring to a form in which what is linked is near, and that is as wide as its box.
function spread(graph, layout) {
  graph.layout(layout).run();
  const { w, h } = graph.elements().boundingBox();
  const by = Math.min(Math.max((graph.width() / graph.height()) / (w / h), 0.6), 2.2) || 1;
  graph.nodes().positions((node) => ({ x: node.position("x") * by, y: node.position("y") }));
  graph.fit(undefined, 28);
}

// The drawn graph of a box.
export const plotted = (box) => graphs.get(box);

function style() {
  const root = getComputedStyle(document.documentElement);
  const colour = (name) => root.getPropertyValue(`--${name}`).trim();
  return [
    { selector: "node", style: {
      label: "data(label)", color: colour("text"), "font-size": 14, "font-family": "system-ui, sans-serif",
      "text-wrap": "ellipsis", "text-max-width": 130, "text-valign": "bottom", "text-margin-y": 4,
      "text-background-color": colour("paper"), "text-background-opacity": 0.85, "text-background-padding": 2,
      "background-color": colour("strong-line"), width: 14, height: 14, "min-zoomed-font-size": 5 } },
    ...[0, 1, 2, 3, 4, 5].map((tone) => ({ selector: `node[tone = ${tone}]`, style: { "background-color": colour(`tone-${tone}`), width: "data(size)", height: "data(size)" } })),
    { selector: "node[kind = 'centre']", style: { "border-width": 3, "border-color": colour("text"), "font-size": 16, "font-weight": "bold", "text-max-width": 220, "z-index": 10 } },
    { selector: "node[kind = 'start']", style: { "background-color": colour("paper"), "border-width": 3, "border-color": colour("link"), width: 20, height: 20 } },
    { selector: "node[kind = 'reached']", style: { "background-color": colour("link"), width: 20, height: 20 } },
    { selector: "edge", style: { width: 1, "line-color": colour("line"), "curve-style": "bezier", opacity: 1,
      "target-arrow-shape": "triangle", "arrow-scale": 0.7, "target-arrow-color": colour("line") } },
    { selector: "edge[weight]", style: { width: "data(weight)", "line-color": colour("strong-line"), "target-arrow-shape": "none", "curve-style": "straight", opacity: 0.45 } },
    { selector: ".faded", style: { opacity: 0.2 } },
    { selector: ".gone", style: { display: "none" } },
    { selector: "edge[taken = 0]", style: { "line-style": "dashed", "target-arrow-shape": "none", "line-color": colour("strong-line") } },
    { selector: "edge[taken = 1]", style: { width: 3, "line-color": colour("link"), "target-arrow-color": colour("link"),
      label: "data(label)", "font-size": 13, color: colour("text"), "text-background-color": colour("paper"),
      "text-background-opacity": 1, "text-background-padding": 2 } },
  ];
}

export function draw(nodes, edges, { open = () => {}, round = "" } = {}) {
  const box = make("div", { class: "graph", role: "img", "aria-label": `A graph of ${nodes.length} nodes; the lists say the same` });
  plots.set(box, () => {
    const ring = { name: "concentric", concentric: (node) => (node.id() === round ? 2 : 1), levelWidth: () => 1, minNodeSpacing: 34, startAngle: -Math.PI / 2 };
    // A step takes the square of the nodes in time: of many there are fewer, and it cools down within them.
    const numIter = Math.round(Math.min(700, 30000 / nodes.length));
    const free = { name: "cose", animate: false, randomize: false, nodeRepulsion: 60000, idealEdgeLength: 80, nodeOverlap: 30, gravity: 0.6,
      numIter, coolingFactor: 0.001 ** (1 / numIter) };
    const graph = cytoscape({
      container: box,
      elements: [...nodes.map((data) => ({ data })), ...edges.map((data) => ({ data }))],
      layout: { ...(round ? ring : free), padding: 28 },
      userZoomingEnabled: false,
      maxZoom: 1.6,
      style: style(),
    });
    graph.on("tap", "node", (event) => open(event.target.data()));
    graph.on("mouseover", "node", () => { box.style.cursor = "pointer"; });
    graph.on("mouseout", "node", () => { box.style.cursor = ""; });
    if (round) spread(graph, { ...free, nodeRepulsion: 900000, nodeOverlap: 60, idealEdgeLength: 120, gravity: 0.4 });
    graphs.set(box, graph);
    box.dataset.edges = graph.edges().length;
    box.dataset.nodes = graph.nodes().length;
  });
  return box;
}

export function legend(...entries) {
  return make("ul", { class: "legend" }, entries.map(([mark, text]) => {
    const shapes = {
      start: () => svg("circle", { cx: 12, cy: 6, r: 4.5, fill: "none", class: "edge-taken" }),
      reached: () => svg("circle", { cx: 12, cy: 6, r: 5, class: "mark-cited" }),
      other: () => svg("circle", { cx: 12, cy: 6, r: 4, fill: "var(--strong-line)" }),
      taken: () => svg("line", { x1: 0, y1: 6, x2: 24, y2: 6, class: "edge-taken" }),
      weighed: () => svg("line", { x1: 0, y1: 6, x2: 24, y2: 6, class: "edge-weighed" }),
      read: () => svg("rect", { x: 8, y: 0, width: 8, height: 12, class: "mark-read" }),
      dropped: () => svg("rect", { x: 8, y: 6, width: 8, height: 6, class: "mark-dropped" }),
      cited: () => svg("path", { d: "M6 2 L18 2 L12 11 Z", class: "mark-cited" }),
    };
    return make("li", {}, svg("svg", { viewBox: "0 0 24 12", "aria-hidden": "true" }, shapes[mark]()), text);
  }));
}
