// A memory to look at. Every text from the memory is set as text, never as HTML.

const main = document.getElementById("main");
const START = 20;
const MOST_EDGES = 60;

// The token stands behind the #, which no browser sends to a server.
const given = new URLSearchParams(location.hash.replace(/^#\/?\??/, "")).get("token");
if (given) {
  sessionStorage.setItem("token", given);
  history.replaceState(null, "", "#/");
}

async function call(path, body) {
  const headers = { authorization: `Bearer ${sessionStorage.getItem("token") ?? ""}` };
  const options = { headers };
  if (body !== undefined) {
    headers["content-type"] = "application/json";
    Object.assign(options, { method: "POST", body: JSON.stringify(body) });
  }
  const answer = await fetch(path, options);
  const value = await answer.json();
  if (!answer.ok) throw new Error(value.error ?? `${answer.status}`);
  return value;
}

// --- making elements --------------------------------------------------------------------------

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "onclick") element.addEventListener("click", value);
    else element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

const path = (...parts) => `#/${parts.map(encodeURIComponent).join("/")}`;
const link = (text, ...parts) => make("a", { href: path(...parts) }, text);
const quiet = (text) => make("span", { class: "quiet" }, text);
const entityLink = (key, name) => link(name || key, "entities", key);

function table(caption, heads, rows, numbers = []) {
  const cell = (tag, value, at) =>
    make(tag, { ...(numbers.includes(at) ? { class: "number" } : {}), ...(tag === "th" ? { scope: "col" } : {}) }, value);
  const line = (tag) => (values) => make("tr", {}, ...values.map((value, at) => cell(tag, value, at)));
  return make("div", { class: "wide", tabindex: "0", role: "region", "aria-label": caption },
    make("table", {}, make("thead", {}, line("th")(heads)), make("tbody", {}, ...rows.map(line("td")))));
}

function list(items, none) {
  return items.length ? make("ul", {}, ...items.map((item) => make("li", {}, item))) : quiet(none);
}

// Shows the first items of a long list, and more on demand.
function long(items, render, none, size = START) {
  const holder = make("div");
  const grow = (from) => {
    holder.append(...items.slice(from, from + size).map(render));
    if (from + size >= items.length) return;
    const button = make("button", {}, `Show ${Math.min(size, items.length - from - size)} more of ${items.length}`);
    button.addEventListener("click", () => { button.remove(); grow(from + size); });
    holder.append(button);
  };
  if (items.length) grow(0);
  else holder.append(quiet(none));
  return holder;
}

function segmentBox(segment, kind = "", about = "") {
  const where = [segment.part, `segment ${segment.index + 1}`, `characters ${segment.start}-${segment.end}`];
  return make("div", {},
    make("div", {},
      kind ? make("span", { class: `kind ${kind}` }, `${kind} `) : null,
      link(segment.document_id, "documents", segment.document_id), " ",
      quiet([...where, about].filter(Boolean).join(" · "))),
    make("blockquote", { class: kind }, segment.text));
}

// --- the graph --------------------------------------------------------------------------------

// A graph is plotted when its box stands on the page: it has no size before.
const plots = new WeakMap();

function draw(nodes, edges, { open = () => {}, ordered = false } = {}) {
  const box = make("div", { class: "graph", role: "img", "aria-label": `A graph of ${nodes.length} nodes; the lists say the same` });
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(`--${name}`).trim();
  plots.set(box, () => {
    const graph = cytoscape({
      container: box,
      elements: [...nodes.map((data) => ({ data })), ...edges.map((data) => ({ data }))],
      layout: ordered
        ? { name: "breadthfirst", directed: true, direction: "rightward", animate: false }
        : { name: "cose", animate: false, nodeRepulsion: 20000, idealEdgeLength: 90 },
      wheelSensitivity: 0.3,
      style: [
        { selector: "node", style: {
          label: "data(label)", color: colour("text"), "font-size": 12, "text-wrap": "ellipsis", "text-max-width": 140,
          "text-valign": "bottom", "background-color": colour("quiet"), width: 18, height: 18 } },
        { selector: "node[kind = 'centre'], node[kind = 'step']", style: { "background-color": colour("link"), width: 28, height: 28 } },
        { selector: "node[kind = 'read']", style: { "background-color": colour("read"), shape: "round-rectangle" } },
        { selector: "node[kind = 'dropped']", style: { "background-color": colour("dropped"), shape: "round-rectangle" } },
        { selector: "edge", style: { width: 1.5, "line-color": colour("line"), "curve-style": "bezier",
          "target-arrow-shape": "triangle", "target-arrow-color": colour("line") } },
      ],
    });
    graph.on("tap", "node", (event) => open(event.target.data()));
    box.dataset.nodes = graph.nodes().length;
  });
  return box;
}

// --- the parts --------------------------------------------------------------------------------

async function overview() {
  const status = await call("/status");
  return [make("h2", {}, status.namespace), quiet(status.location),
    table("The memory in figures", ["what", "how many"], Object.entries(status.counts).map(([name, count]) => [name, `${count}`]), [1]),
    ...(status.problems.length ? [make("h3", {}, "Incomplete"),
      long(status.problems, ([id, index, why]) => make("div", {}, link(id, "documents", id), ` segment ${index + 1}: ${why}`), "")] : []),
    list(status.warnings, "")];
}

async function documents() {
  const found = await call("/documents");
  return [make("h2", {}, "Documents"),
    long(found, (info) => make("div", {}, link(info.title || info.id, "documents", info.id), " ",
      quiet(`${info.segments} segments, ${info.characters} characters`)), "No document has been added yet.", 200)];
}

async function oneDocument(id) {
  const [info, segments] = await Promise.all([call(`/documents/${encodeURIComponent(id)}`), call(`/segments?document=${encodeURIComponent(id)}`)]);
  return [make("h2", {}, info.title || id),
    quiet(`${segments.length} segments, ${info.text.length} characters`),
    list(Object.entries(info.metadata).map(([name, value]) => `${name}: ${value}`), ""),
    long(segments, (segment) => segmentBox(segment), "It has no segments.")];
}

async function entities() {
  const found = await call("/entities?limit=1000");
  return [make("h2", {}, "Entities"), quiet("by the number of segments that name them"),
    table("Entities", ["name", "type", "segments"],
      found.map((entity) => [entityLink(entity.key, entity.name), entity.type || "", `${entity.segments}`]), [2])];
}

async function entity(name) {
  const view = await call(`/entities/${encodeURIComponent(name)}`);
  const { entity: centre, relations, neighbours } = view;
  const named = (key) => (key === centre.key ? centre.name : neighbours[key] ?? key);
  const shown = relations.slice(0, MOST_EDGES);
  const ends = [...new Set(shown.flatMap((relation) => [relation.head, relation.tail]))];
  const nodes = [...new Set([centre.key, ...ends])].map((key) => ({ id: key, label: named(key), kind: key === centre.key ? "centre" : "entity" }));
  const edges = shown.map((relation) => ({ id: relation.key, source: relation.head, target: relation.tail }));
  return [make("h2", {}, centre.name), quiet([centre.type || "type unknown", `${view.segments.length} segments`].join(" · ")),
    make("div", { class: "columns" },
      make("section", {}, make("h3", {}, "Neighbours"),
        draw(nodes, edges, { open: (node) => { location.hash = path("entities", node.id); } }),
        relations.length > shown.length ? quiet(`The ${shown.length} relations with most statements of ${relations.length}.`) : null,
        make("h3", {}, "Names in the text"), list(centre.forms.map(([form, count]) => `${form} (${count})`), "none"),
        make("h3", {}, "Questions that added it"), list(view.questions.map((question) => question.text), "none")),
      make("section", {}, make("h3", {}, "Relations"),
        long(relations, (relation) => make("div", {}, entityLink(relation.head, named(relation.head)), " – ",
          entityLink(relation.tail, named(relation.tail)), make("blockquote", {}, relation.description)), "none"),
        make("h3", {}, "Segments"), long(view.segments, (segment) => segmentBox(segment), "none", 5)))];
}

async function trails() {
  const found = await call("/trails?limit=100");
  const form = make("form", {}, make("button", {}, "Compare the two that are chosen"));
  const rows = found.map((trail) => {
    const box = make("input", { type: "checkbox", value: trail.id, "aria-label": `Choose: ${trail.question}` });
    return [box, link(trail.question, "trails", trail.id), trail.strategy, trail.status, `${trail.steps.length}`, trail.created];
  });
  form.prepend(table("Trails", ["", "question", "strategy", "status", "steps", "when"], rows, [4]));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const chosen = [...form.querySelectorAll(":checked")].map((box) => box.value).slice(0, 2);
    if (chosen.length) location.hash = path("trails", ...chosen);
  });
  return [make("h2", {}, "Trails"), found.length ? form : quiet("Nothing has been asked yet.")];
}

async function someTrails(...ids) {
  const shown = await Promise.all(ids.slice(0, 2).map(trail));
  return [make("div", { class: shown.length > 1 ? "columns" : "" }, ...shown)];
}

async function trail(id) {
  const found = await call(`/trails/${encodeURIComponent(id)}`);
  const ids = [...new Set(found.steps.flatMap((step) => [...step.read, ...step.dropped].map((one) => one.segment_id)))];
  const texts = new Map((ids.length ? await call("/segments", { ids }) : []).map((segment) => [segment.id, segment]));
  return make("section", {},
    make("h2", {}, found.question),
    quiet([found.strategy, `window ${found.window}`, found.status, found.reasoner, found.created].filter(Boolean).join(" · ")),
    found.answer ? make("blockquote", {}, found.answer) : null,
    trailGraph(found, texts),
    make("ol", {}, ...found.steps.map((step) => make("li", {}, stepBox(step, texts)))),
    make("h3", {}, "Citations"), list(found.citations.map((cited) => cited.quote), "none"));
}

function stepBox(step, texts) {
  const scored = (kind) => (one) => {
    const segment = texts.get(one.segment_id);
    const about = [`score ${one.score.toFixed(3)}`, `${one.tokens} tokens`, one.via].filter(Boolean).join(" · ");
    return segment ? segmentBox(segment, kind, about) : make("div", {}, `${kind}: ${one.segment_id}, which is deleted`);
  };
  const edge = (one) => make("div", {}, `${one.taken ? "taken" : "not taken"}, ${one.score.toFixed(3)}: ${one.description}`);
  return make("div", {},
    make("strong", {}, step.action), " ", step.verdict, " ", quiet(`${step.tokens} tokens, ${step.seconds.toFixed(2)} s`),
    step.reason ? make("p", {}, step.reason) : null,
    step.entities.length ? make("p", {}, "Entities: ", ...step.entities.flatMap((name, at) => [at ? ", " : "", entityLink(name, name)])) : null,
    make("details", {}, make("summary", {}, `${step.read.length} read, ${step.dropped.length} dropped, ${step.edges.length} edges`),
      ...step.read.map(scored("read")), ...step.dropped.map(scored("dropped")), ...step.edges.map(edge)));
}

// The way of a run: its steps in order, and the segments that each read or dropped.
function trailGraph(found, texts) {
  const nodes = [];
  const edges = [];
  const known = new Set();
  const label = (id) => { const s = texts.get(id); return s ? `segment ${s.index + 1}` : "deleted"; };
  found.steps.forEach((step, at) => {
    const id = `step ${step.n}`;
    nodes.push({ id, label: `${step.n}. ${step.action}`, kind: "step" });
    if (at) edges.push({ id: `to ${id}`, source: `step ${found.steps[at - 1].n}`, target: id });
    for (const kind of ["read", "dropped"]) {
      for (const one of step[kind].slice(0, 12)) {
        if (!known.has(one.segment_id)) nodes.push({ id: one.segment_id, label: label(one.segment_id), kind, segment: true });
        known.add(one.segment_id);
        edges.push({ id: `${id} ${kind} ${one.segment_id}`, source: id, target: one.segment_id });
      }
    }
  });
  const open = (node) => { const s = texts.get(node.id); if (s) location.hash = path("documents", s.document_id); };
  return nodes.length ? draw(nodes, edges, { open, ordered: true }) : null;
}

async function merges() {
  const found = await call("/merges");
  const undo = (merge) => make("button", { onclick: async () => {
    try {
      await call("/merges", { first: merge.name, second: merge.into, same: false });
      await route();
    } catch (error) { refuse(error); }
  } }, `Keep “${merge.name}” apart`);
  return [make("h2", {}, "Merged names"), quiet("Your decision overrides the rules and is kept."),
    long(found, (merge) => make("div", {}, `${merge.name} → `, entityLink(merge.entity, merge.into), " ",
      quiet(`${merge.reason} ${merge.score.toFixed(2)} `), undo(merge)), "No names are merged.", 100)];
}

async function costs() {
  const rows = await call("/usage");
  return [make("h2", {}, "Costs by stage"),
    rows.length ? table("Costs", ["phase", "stage", "calls", "from cache", "prompt tokens", "reply tokens", "cost"],
      rows.map((row) => [row.phase, row.key, `${row.calls}`, `${row.from_cache}`, `${row.tokens_in}`, `${row.tokens_out}`,
        row.cost === null ? "unknown" : row.cost.toFixed(4)]), [2, 3, 4, 5, 6])
      : quiet("No chat model and no embedding server has been called.")];
}

// --- finding the part -------------------------------------------------------------------------

const PARTS = { documents: [documents, oneDocument], entities: [entities, entity], trails: [trails, someTrails],
  merges: [merges, merges], costs: [costs, costs] };
let latest = 0;

function refuse(error) {
  main.replaceChildren(make("p", { class: "error", role: "alert" }, error.message));
}

async function route() {
  const [name, ...rest] = location.hash.replace(/^#\/?/, "").split("/").filter(Boolean).map(decodeURIComponent);
  const [all, one] = PARTS[name] ?? [overview, overview];
  for (const anchor of document.querySelectorAll("nav a")) {
    if (anchor.getAttribute("href") === `#/${name}`) anchor.setAttribute("aria-current", "page");
    else anchor.removeAttribute("aria-current");
  }
  const mine = ++latest;
  try {
    const shown = await (rest.length ? one(...rest) : all());
    if (mine !== latest) return;
    main.replaceChildren(...shown.filter(Boolean));
    for (const box of main.querySelectorAll(".graph")) plots.get(box)();
    main.focus({ preventScroll: true });
    window.scrollTo(0, 0);
  } catch (error) {
    if (mine === latest) refuse(error);
  }
}

document.getElementById("find").addEventListener("submit", (event) => {
  event.preventDefault();
  const name = event.target.elements.name.value.trim();
  if (name) location.hash = path("entities", name);
});
window.addEventListener("hashchange", route);
route();
