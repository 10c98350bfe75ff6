// Trails: how a question was answered, through the graph and through the text.

import { call } from "./call.js";
import { about, chip, code, count, empty, entityLink, folded, items, link, make, marked, number, path, quiet, segmentBox, svg, when } from "./dom.js";
import { draw, legend } from "./graph.js";

const PAGE = 25;
const RIBBONS = 8;
// Who answered, by the name that is recorded: `local.v3`, or `prompted:MODEL:MODE:PROMPTS`.
const answeredBy = (name) => (name.startsWith("local.") ? "built-in rules"
  : name.replace(/^prompted:(.*):([^:]*):([^:]*)$/, "$1, mode $2, prompts $3"));
const STATUS = { answered: "read", unanswerable: "dropped" };

export const trailRow = (trail) => make("div", {}, link(trail.question, "trails", trail.id), " ",
  quiet(`${trail.strategy} · ${trail.status}`));

export async function trails() {
  const rows = items();
  const box = (id, question) => make("input", { type: "checkbox", value: id, "aria-label": `Compare: ${question}` });
  const row = (trail) => {
    const label = make("div", {}, link(trail.question, "trails", trail.id), " ", chip(trail.status, STATUS[trail.status] ?? ""),
      make("div", { class: "small quiet" }, `${trail.strategy} · window ${number(trail.window)} · ${count(trail.steps, "step")} · ${when(trail.created)}`));
    const line = make("div", {}, box(trail.id, `${trail.question} ${trail.strategy}`), label);
    Object.assign(line.style, { display: "grid", gridTemplateColumns: "1.75rem 1fr" });
    return line;
  };
  const load = async (from) => call(`/trails?brief=true&limit=${PAGE}&offset=${from}`);
  const first = await load(0);
  const title = make("h2", {}, "Trails");
  if (!first.length) return [title, empty("Nothing has been asked yet: ", code("qrmem ask \"…\""))];
  rows.append(...first.map(row));
  const compare = make("button", { disabled: "" }, "Choose two to compare");
  compare.disabled = true;
  const form = make("form", {}, make("p", {}, compare), rows);
  const chosen = () => [...form.querySelectorAll(":checked")].map((one) => one.value);
  form.addEventListener("change", () => {
    compare.disabled = chosen().length !== 2;
    compare.textContent = compare.disabled ? `Choose two to compare (${chosen().length} chosen)` : "Compare the two that are chosen";
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (chosen().length === 2) location.hash = path("trails", ...chosen());
  });
  if (first.length === PAGE) {
    const more = make("button", { class: "more", type: "button" }, "Show older trails");
    more.addEventListener("click", async () => {
      const next = await load(rows.childElementCount);
      rows.append(...next.map(row));
      if (next.length < PAGE) more.remove();
    });
    form.append(more);
  }
  return [title, about("How each question was answered; newest first."), form];
}

export async function someTrails(...ids) {
  const shown = await Promise.all(ids.slice(0, 2).map(load));
  const crumbs = make("p", { class: "crumbs" }, link("Trails", "trails"));
  if (shown.length === 1) {
    const [one] = shown;
    return [crumbs, make("h2", {}, one.trail.question), ...body(one)];
  }
  const [first, second] = shown;
  const same = first.trail.question === second.trail.question;
  return [crumbs, make("h2", {}, same ? first.trail.question : "Two trails"), difference(first, second),
    make("div", { class: "columns" }, shown.map((one) =>
      make("section", {}, make("h3", {}, same ? one.trail.strategy : one.trail.question), ...body(one))))];
}

const load = async (id) => shownOf(await call(`/trails/${encodeURIComponent(id)}`));

// A trail with the texts that it names.
export async function shownOf(trail) {
  const cited = new Set(trail.citations.map((one) => one.segment_id));
  const nodes = (step) => step.nodes.flatMap((one) => (one.kind === "segment" || one.kind === "sentence" ? one.segments : []));
  const own = (kind) => new Set(trail.steps.flatMap((step) => step[kind].map((one) => one.segment_id)));
  const read = own("read");
  if (!read.size) for (const id of trail.steps.flatMap(nodes)) read.add(id);
  const dropped = new Set([...own("dropped")].filter((one) => !read.has(one)));
  const ids = [...new Set([...cited, ...read, ...dropped])].slice(0, 1000);
  const found = ids.length ? await call("/segments", { ids }) : [];
  // The documents that were read come before those of which something was only found.
  const rank = (segment) => (cited.has(segment.id) ? 0 : read.has(segment.id) ? 1 : 2);
  const ranked = [...found].sort((a, b) => rank(a) - rank(b));
  const documents = [...new Set(ranked.map((segment) => segment.document_id))].slice(0, RIBBONS);
  const infos = await Promise.all(documents.map((id) => call(`/document?id=${encodeURIComponent(id)}&text=false`)));
  const lengths = new Map(infos.map((info) => [info.id, info.characters]));
  return { trail, read, dropped, cited, lengths, texts: new Map(found.map((segment) => [segment.id, segment])) };
}

function citation(one, texts) {
  const at = texts.get(one.segment_id);
  return make("div", {},
    make("div", { class: "small" }, link(one.title || one.document_id, "documents", one.document_id, `${(at?.index ?? 0) + 1}`), " ",
      quiet([one.part, `characters ${number(one.start)}–${number(one.end)}`].filter(Boolean).join(" · "))),
    make("blockquote", {}, marked(one.quote, one.matches, true)));
}

// The answer, and where it stands.
function result({ trail, texts }) {
  const ends = make("p", { class: "small" }, chip(trail.status, STATUS[trail.status] ?? ""), " ",
    quiet([trail.strategy, `window ${number(trail.window)}`, when(trail.created), answeredBy(trail.reasoner)].filter(Boolean).join(" · ")));
  const cited = make("div", { class: "cited" }, folded(trail.citations, (one) => citation(one, texts), "none", "citation", 5));
  // Without a chat model the passages are the answer.
  if (trail.status === "passages") return [ends, cited];
  return [ends,
    trail.answer ? make("blockquote", { class: "answer" }, trail.answer) : make("p", { class: "quiet" }, "No answer was given."),
    make("h3", {}, "Citations"), cited];
}

// A whole trail: the answer beside the steps that led to it, then its way.
export function body(shown) {
  const { trail, read, dropped, cited, lengths, texts } = shown;
  const graph = graphOf(trail);
  return [make("div", { class: "columns" }, make("section", {}, ...result(shown)),
      make("section", {}, make("h3", {}, "Step by step"),
        make("ol", { class: "steps" }, trail.steps.map((step, at) => make("li", {}, stepBox(step, texts, trail.steps[at - 1])))))),
    graph ? make("h3", {}, "Through the graph") : null, graph,
    make("h3", {}, "Through the text"), ribbons({ texts, lengths, read, dropped, cited }), costsOf(trail)];
}

function costsOf(trail) {
  const stages = Object.entries({ ...trail.usage.construction, ...trail.usage.online });
  if (!stages.length) return null;
  const money = (one) => (one.cost === null ? "" : `, ${one.cost.toFixed(4)} USD`);
  return make("div", {}, make("h3", {}, "Cost by stage"), make("ul", { class: "plain" }, stages.map(([stage, one]) =>
    make("li", {}, `${stage}: `, quiet(`${count(one.calls, "call")}, ${number(one.tokens_in)} tokens in, ${number(one.tokens_out)} out${money(one)}`)))));
}

// What two runs read alike.
function difference(first, second) {
  const both = [...first.read].filter((id) => second.read.has(id)).length;
  const only = (one) => count(one.read.size - both, "segment");
  return make("p", { class: "about" }, `Both read ${count(both, "segment")}. Only ${first.trail.strategy} (left): ${only(first)}. Only ${second.trail.strategy} (right): ${only(second)}.`);
}

// A line for each document: what was read stands tall, what was dropped low, what is cited has a mark.
function ribbons({ texts, lengths, read, dropped, cited }) {
  const found = new Map();
  for (const segment of texts.values()) found.set(segment.document_id, [...(found.get(segment.document_id) ?? []), segment]);
  if (!found.size) return quiet("No segment was read.");
  const shown = [...found].filter(([id]) => lengths.has(id));
  const lines = shown.map(([id, segments]) => {
    segments.sort((a, b) => a.index - b.index);
    const length = Math.max(lengths.get(id), 1);
    const marks = segments.flatMap((one) => {
      const x = (one.start / length) * 996, width = Math.max(((one.end - one.start) / length) * 996, 3);
      const place = { x, width };
      const kind = read.has(one.id) ? "read" : "dropped";
      const shape = svg("rect", { ...place, y: kind === "read" ? 12 : 22, height: kind === "read" ? 26 : 16, class: `mark-${kind}` },
        svg("title", {}, `segment ${one.index + 1}: ${kind}${cited.has(one.id) ? ", cited" : ""}`));
      const top = cited.has(one.id) ? [svg("path", { d: `M${x + width / 2 - 6} 0 h12 l-6 9 Z`, class: "mark-cited" })] : [];
      return [shape, ...top];
    });
    const say = (ids) => segments.filter((one) => ids.has(one.id)).map((one) => one.index + 1).join(", ") || "none";
    return make("div", {}, make("div", { class: "ribbon-name" }, link(id, "documents", id), quiet(`${number(length)} characters`)),
      svg("svg", { class: "ribbon", viewBox: "0 0 1000 40", preserveAspectRatio: "none", role: "img",
        "aria-label": `Read: segments ${say(read)}. Dropped: ${say(dropped)}.` }, svg("rect", { x: 0, y: 36, width: 1000, height: 2, class: "base" }), ...marks));
  });
  const rest = found.size - shown.length;
  return make("div", {}, lines, rest ? make("p", { class: "quiet small" }, `and segments of ${count(rest, "more document")}, which the steps name`) : null, legend(["read", `read (${read.size})`], ["dropped", `found, but no room in the window (${dropped.size})`], ["cited", `cited (${cited.size})`]));
}

// The way of a run: where it started, the edges that it weighed and those that it took, by step.
function graphOf(trail) {
  const edges = trail.steps.flatMap((step) => step.edges.map((edge) => ({ step: step.n, ...edge })));
  if (!edges.length) return null;
  const taken = edges.filter((edge) => edge.taken);
  const left = edges.filter((edge) => !edge.taken).slice(0, 12);
  const names = new Map(trail.steps.flatMap((step) => step.entities).map((name) => [name.toLowerCase(), name]));
  const norm = (key) => key.split("|")[0].toLowerCase();
  const label = (key) => names.get(norm(key)) ?? key.split("|")[0];
  const reached = new Set(taken.flatMap((edge) => [edge.head, edge.tail]));
  const starts = new Set(trail.steps[0].entities.map((name) => name.toLowerCase()));
  const kind = (key) => (starts.has(norm(key)) ? "start" : reached.has(key) ? "reached" : "other");
  const shown = [...taken, ...left];
  const nodes = [...new Set(shown.flatMap((edge) => [edge.head, edge.tail]))].map((key) => ({ id: key, label: label(key), kind: kind(key) }));
  const drawn = shown.map((edge, at) => ({ id: `edge ${at}`, source: edge.head, target: edge.tail, taken: edge.taken ? 1 : 0, label: `step ${edge.step}` }));
  return make("div", {}, draw(nodes, drawn, { open: (node) => { location.hash = path("entities", node.id); } }),
    legend(["start", "start"], ["reached", "reached"], ["other", "seen"], ["taken", "edge taken"], ["weighed", "compared, not taken"]));
}

export function stepBox(step, texts, before) {
  const scored = (kind) => (one) => {
    const segment = texts.get(one.segment_id);
    const told = [`score ${one.score.toFixed(3)}`, one.tokens ? count(one.tokens, "token") : "", one.via].filter(Boolean).join(" · ");
    return segment ? segmentBox(segment, kind, told) : make("div", {}, chip(kind, kind), ` ${one.segment_id}, which is deleted`);
  };
  const edge = (one) => make("div", { class: one.taken ? "scored" : "scored left" }, make("span", {}, one.score.toFixed(3)),
    make("span", {}, entityLink(one.head, one.head.split("|")[0]), " – ", entityLink(one.tail, one.tail.split("|")[0]), `: ${one.description}`));
  const node = (one) => make("div", { class: "scored" }, make("span", {}, one.score.toFixed(3)),
    make("span", {}, one.kind === "segment" || one.kind === "sentence" ? `${one.kind}: ${place(one, texts)}` : `${one.kind}, level ${one.level}`));
  const fold = (title, all, render, isOpen = false) => (all.length
    ? make("details", isOpen ? { open: "open" } : {}, make("summary", {}, title), folded(all, render, "", "row", 10)) : null);
  const taken = step.edges.filter((one) => one.taken);
  const left = step.edges.filter((one) => !one.taken);
  const known = new Set(before?.entities);
  const joined = step.entities.filter((name) => !known.has(name));
  return make("div", {},
    make("strong", {}, step.action), step.verdict ? [chip(step.verdict, step.verdict === "unanswerable" ? "dropped" : "read"), " "] : null,
    quiet([step.tokens ? count(step.tokens, "token") : "", `${step.seconds.toFixed(2)} s`].filter(Boolean).join(", ")),
    step.reason ? make("p", {}, step.reason) : null,
    joined.length ? make("p", { class: "small" }, known.size ? "Joined by " : "At ", joined.slice(0, 12).flatMap((name, at) => [at ? ", " : "", entityLink(name, name)]),
      joined.length > 12 ? ` and ${joined.length - 12} more` : "") : null,
    taken.map(edge),
    fold(`${count(left.length, "edge")} compared and not taken`, left, edge),
    fold(`${count(step.read.length, "segment")} read`, step.read, scored("read")),
    fold(`${count(step.dropped.length, "segment")} found and dropped: no room in the window`, step.dropped, scored("dropped")),
    fold(`${count(step.nodes.length, "text")} of the tree found`, step.nodes, node),
    step.memory ? make("details", {}, make("summary", {}, `What it noted${step.likeness ? `; ${(100 * step.likeness).toFixed(0)} % as before` : ""}`), make("blockquote", {}, step.memory)) : null);
}

function place(node, texts) {
  const segment = texts.get(node.segments[0]);
  if (!segment) return node.key;
  return node.end ? segment.text.slice(node.start - segment.start, node.end - segment.start) : `segment ${segment.index + 1}`;
}
