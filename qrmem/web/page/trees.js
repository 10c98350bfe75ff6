// Trees of summaries: from the roots down, one level at a time.

import { call, part } from "./call.js";
import { about, code, count, empty, items, link, long, make, number, quiet, segmentBox } from "./dom.js";

const KINDS = { ilm: "summaries and surprises", raptor: "plain summaries" };
const SOME = 20;

export async function trees() {
  const rows = await part("/trees", 0, 50);
  const row = (tree) => make("div", {}, link(tree.document_id, "trees", tree.kind, tree.document_id), " ",
    quiet([KINDS[tree.kind], count(tree.nodes, "node"), tree.is_current ? "" : "the document has changed since"].filter(Boolean).join(" · ")));
  return [make("h2", {}, "Trees"), about("Summaries of segments, of groups of segments, and so on up to the whole; a surprise is a statement that does not follow from the rest of the text."),
    rows.total ? long(items(), rows.map(row), rows.total, async (from) => (await part("/trees", from, 50)).map(row), "tree")
      : empty("No tree has been built yet: ", code("qrmem tree build"))];
}

async function children(node) {
  const keys = node.covers.slice(0, 1000);
  return node.covers[0]?.startsWith("tree:")
    ? (await call("/trees/nodes", { keys })).map(nodeBox)
    : (await call("/segments", { ids: keys })).map((segment) => make("div", { class: "node" }, segmentBox(segment)));
}

function nodeBox(node) {
  const below = make("div", { class: "below" });
  const isLeaf = !node.covers[0]?.startsWith("tree:");
  const what = isLeaf ? count(node.covers.length, "segment") : count(node.covers.length, "summary").replace("summarys", "summaries");
  const open = make("details", {}, make("summary", {}, isLeaf ? `The text: ${what}` : `Below: ${what}`), below);
  open.addEventListener("toggle", async () => {
    if (!open.open || below.childNodes.length) return;
    try { below.append(...await children(node)); } catch (error) { below.append(make("p", { class: "error" }, error.message)); }
  });
  return make("div", { class: "node" },
    make("p", { class: "small quiet" }, `level ${node.level} · ${count(node.segments.length, "segment")}${node.is_well_formed ? "" : " · the model's reply had no labels"}`),
    make("p", {}, node.summary),
    node.surprises.length ? make("ul", { class: "surprises", "aria-label": "Surprises" }, node.surprises.map((said) => make("li", {}, said))) : null,
    open);
}

export async function oneTree(kind, id) {
  const found = await call(`/trees?document=${encodeURIComponent(id)}`);
  const tree = found.find((one) => one.kind === kind);
  if (!tree) throw new Error(`no tree of ${id}: qrmem tree build`);
  const roots = await call("/trees/nodes", { keys: tree.roots.slice(0, SOME) });
  const next = async (from) => (await call("/trees/nodes", { keys: tree.roots.slice(from, from + SOME) })).map(nodeBox);
  return [make("p", { class: "crumbs" }, link("Trees", "trees")), make("h2", {}, id),
    about(KINDS[tree.kind], `${number(tree.nodes)} nodes`), make("p", {}, link("The document itself", "documents", id)),
    tree.is_current ? null : make("p", { class: "error" }, "The document has changed since: ", code("qrmem tree build")),
    long(make("div"), roots.map(nodeBox), tree.roots.length, next, "root")];
}
