// Documents as texts.

import { call, part } from "./call.js";
import { about, code, count, empty, link, long, make, marked, number, paged, quiet } from "./dom.js";

const SOME = 20;

export const nothing = () => empty("This memory is empty. Add a text: ", code("qrmem add book.txt"));

export const documentRow = (info) => make("div", {}, link(info.title || info.id, "documents", info.id), " ",
  quiet(`${count(info.segments, "segment")}, ${number(info.characters)} characters`));

export async function documents() {
  const [total, shown] = await paged("/documents?turns=false", documentRow, "document");
  return [make("h2", {}, "Documents"), about(count(total, "document"), "turns are under Conversations"), total ? shown() : nothing()];
}

// A segment as running text; its number in the margin leads to it.
function passage(segment, id, query, isTarget, isNewPart) {
  const anchor = link(`${segment.index + 1}`, ...["documents", id, `${segment.index + 1}`, query].filter(Boolean));
  anchor.setAttribute("aria-label", `Segment ${segment.index + 1}`);
  return make("div", { class: isTarget ? "passage target" : "passage" }, isNewPart ? make("h3", {}, segment.part) : null,
    make("span", { class: "at" }, anchor), make("div", { class: "running" }, marked(segment.text, segment.matches, segment.start > 0)));
}

export async function oneDocument(id, at = "1", query = "") {
  const wanted = Math.max(Number.parseInt(at, 10) || 1, 1) - 1;
  const from = Math.max(wanted - 3, 0);
  const address = `/segments?document=${encodeURIComponent(id)}&query=${encodeURIComponent(query)}`;
  let before = "";
  const render = (segment) => {
    const isNewPart = segment.part !== before && !segment.text.replace(/^[\s#]*/, "").startsWith(segment.part);
    before = segment.part;
    return passage(segment, id, query, (query !== "" || at !== "1") && segment.index === wanted, isNewPart);
  };
  const [info, rows] = await Promise.all([call(`/document?id=${encodeURIComponent(id)}&text=false`), part(address, from, SOME)]);
  const next = async (shown) => (await part(address, from + shown, SOME)).map(render);
  return [make("p", { class: "crumbs" }, link("Documents", "documents")),
    make("h2", {}, info.title || id),
    about(info.title && info.title !== id ? id : "", count(rows.total, "segment"), `${number(info.characters)} characters`,
      ...Object.entries(info.metadata).map(([name, value]) => `${name}: ${value}`)),
    query ? make("p", { class: "notice" }, make("span", {}, "Marked: the words of ", link(query, "search", query)), link("Hide the marks", "documents", id, `${wanted + 1}`)) : null,
    from ? make("p", {}, link(`From the first segment; this is from segment ${from + 1}`, ...["documents", id, "1", query].filter(Boolean))) : null,
    rows.total ? long(make("div", { class: "text" }), rows.map(render), rows.total - from, next, "segment") : quiet("It has no segments.")];
}
