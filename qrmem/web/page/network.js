// The graph: an entity, its nearest neighbours, and the edges between them.

import { call } from "./call.js";
import { about, count, day, empty, entityLink, folded, link, make, number, path, quiet } from "./dom.js";
import { draw, plot, plotted } from "./graph.js";

const SIZES = [20, 40, 80, 160, 300];
const LAST = 5;

const load = (name, limit) => call(`/graph?limit=${limit}&name=${encodeURIComponent(name)}`);

// People have the same colour everywhere, as what has no type; then the commonest types get one each.
function tones(nodes) {
  const times = new Map();
  for (const { type } of nodes) if (type && type !== "PERSON") times.set(type, (times.get(type) ?? 0) + 1);
  const types = [...times].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).map(([type]) => type);
  const has = (type) => nodes.some((node) => node.type === type);
  return new Map([...(has("PERSON") ? [["PERSON", 0]] : []), ...types.map((type, at) => [type, Math.min(at + 1, LAST)]), ...(has("") ? [["", LAST]] : [])]);
}

function drawn(part, open) {
  const tone = tones(part.nodes);
  const most = Math.max(...part.nodes.map((node) => node.degree), 1);
  const widest = Math.max(...part.edges.map((edge) => edge.statements), 1);
  const nodes = part.nodes.map((node) => ({ id: node.key, label: node.name, tone: tone.get(node.type),
    kind: node.key === part.centre ? "centre" : "entity", size: 14 + 30 * Math.sqrt(node.degree / most) }));
  const edges = part.edges.map((edge, at) => ({ id: `edge ${at}`, source: edge.head, target: edge.tail, at,
    weight: 1 + 4 * Math.sqrt(edge.statements / widest) }));
  return [draw(nodes, edges, { open, round: part.centre }), key(tone)];
}

function key(tone) {
  const named = new Map();
  for (const [type, at] of tone) named.set(at, [...(named.get(at) ?? []), type ? type.toLowerCase().replaceAll("_", " ") : "type unknown"]);
  return make("ul", { class: "legend" }, [...named].map(([at, types]) => make("li", {},
    make("span", { class: `tone tone-${at}`, "aria-hidden": "true" }), types.length > 3 ? "other types" : types.join(", "))),
    make("li", {}, "larger: more relations; thicker: more statements"));
}

// For the page of an entity: drawn when it has come, so that the rest is there before.
export function small(name) {
  const holder = make("div", { class: "graph-holder" }, quiet("drawing …"));
  load(name, SIZES[0]).then((part) => {
    const shown = part.nodes.length > 1 ? drawn(part, (node) => { location.hash = path("entities", node.id); }) : [empty("No relation to another entity was found.")];
    const more = part.nodes.length > 1 ? make("p", {}, link("Larger, with all edges", "graph", part.centre)) : null;
    holder.replaceChildren(...shown, more ?? "");
    plot(holder);
  }, (error) => holder.replaceChildren(make("p", { class: "error", role: "alert" }, error.message)));
  return holder;
}

export async function network(name = "", limit = "40") {
  const part = await load(name, SIZES.includes(Number(limit)) ? limit : 40);
  const title = make("h2", {}, "Graph");
  if (part.nodes.length < 2) return [title, empty(part.nodes.length ? `${part.nodes[0].name} has no relation to another entity.` : "No entity was found.")];
  const names = new Map(part.nodes.map((node) => [node.key, node]));
  const centre = names.get(part.centre);
  const chosen = make("p", { class: "chosen", role: "status" }, quiet("Choose a circle to see what it is."));
  const tell = ({ id }) => chosen.replaceChildren(entityLink(id, names.get(id).name), " ",
    quiet([names.get(id).type.toLowerCase(), count(names.get(id).degree, "neighbour")].filter(Boolean).join(" · ")), " ",
    id === part.centre ? "" : link("Its own graph", "graph", id, limit));
  const [box, legend] = drawn(part, tell);
  box.classList.add("large");
  const rows = part.edges.map((edge) => make("div", {}, entityLink(edge.head, names.get(edge.head).name), " – ", entityLink(edge.tail, names.get(edge.tail).name), " ",
    quiet(count(edge.statements, "statement")), make("div", { class: "small" }, edge.description)));
  const sizes = SIZES.filter((size, at) => !at || SIZES[at - 1] < part.neighbours);
  return [title, about(`${centre.name} and ${number(part.nodes.length - 1)} of ${count(part.neighbours, "neighbour")}`, count(part.edges.length, "edge")),
    make("div", { class: "tools" }, zooming(box),
      sizes.length > 1 ? make("span", {}, "Neighbours: ", sizes.flatMap((size) => [size === Number(limit) ? make("strong", {}, `${size}`) : link(`${size}`, "graph", part.centre, `${size}`), " "])) : null,
      slider(part, box, rows)),
    box, legend, chosen,
    make("h3", {}, "Edges"), folded(rows, (row) => row, "", "edge", 10)];
}

function zooming(box) {
  const button = (text, name, work) => {
    const made = make("button", { type: "button", class: "light", "aria-label": name }, text);
    made.addEventListener("click", () => work(plotted(box)));
    return made;
  };
  const zoom = (by) => (graph) => graph.zoom({ level: graph.zoom() * by, renderedPosition: { x: graph.width() / 2, y: graph.height() / 2 } });
  return make("span", { class: "zooming" }, button("+", "Zoom in", zoom(1.4)), button("−", "Zoom out", zoom(1 / 1.4)), button("Whole", "Show the whole graph", (graph) => graph.fit(undefined, 28)));
}

// What held on a day: it moves over the days on which something began or ended.
function slider(part, box, rows) {
  const days = [...new Set(part.edges.flatMap((edge) => edge.spans.flat()).filter(Boolean).map((stamp) => stamp.slice(0, 10)))].sort();
  if (days.length < 2) return null;
  const said = make("output", { for: "as-of-day" }, "all times");
  const input = make("input", { type: "range", id: "as-of-day", min: "0", max: `${days.length}`, step: "1" });
  input.value = days.length;
  const holds = (edge, at) => !edge.spans.length || edge.spans.some(([from, until]) => from.slice(0, 10) <= at && (!until || at < until.slice(0, 10)));
  input.addEventListener("input", () => {
    const at = days[Number(input.value)];
    said.textContent = at ? day(at) : "all times";
    const graph = plotted(box);
    graph.batch(() => part.edges.forEach((edge, n) => {
      const isGone = at !== undefined && !holds(edge, at);
      graph.getElementById(`edge ${n}`).toggleClass("gone", isGone);
      rows[n].hidden = isGone;
    }));
    graph.nodes().forEach((node) => node.toggleClass("faded", !node.connectedEdges().some((edge) => !edge.hasClass("gone"))));
    box.dataset.edges = graph.edges().filter((edge) => !edge.hasClass("gone")).length;
  });
  return make("span", { class: "time" }, make("label", { for: "as-of-day" }, "As of"), input, said);
}
