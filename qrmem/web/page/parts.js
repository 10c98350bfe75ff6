// The memory in figures, entities, merged names and costs.

import { askBox } from "./asking.js";
import { allowed, call, part } from "./call.js";
import { sessionRow } from "./conversations.js";
import { documentRow, nothing } from "./documents.js";
import { about, chip, code, count, empty, entityLink, folded, items, link, list, long, make, number, paged, quiet, segmentBox, table } from "./dom.js";
import { factBox } from "./facts.js";
import { small } from "./network.js";
import { trailRow } from "./trails.js";

const SOME = 20;
const FEW = 8;
const MANY = 50;

function figures(counts) {
  return make("dl", { class: "figures" }, Object.entries(counts).map(([name, value]) =>
    make("div", {}, make("dt", {}, name), make("dd", {}, number(value)))));
}

const more = (shown, name, place) => (shown.total > shown.length ? make("p", { class: "small" }, link(`all ${count(shown.total, name)}`, place)) : "");

export async function overview() {
  // The figures of a large memory take a moment: the lists do not wait for them.
  const [first, named, asked, said] = await Promise.all([
    part("/documents?turns=false", 0, 6), call("/entities?limit=12"), call("/trails?limit=6&brief=true"), part("/sessions", 0, 6)]);
  const head = make("div", {}, make("h2", {}, "A memory"), about("counting …"));
  const status = call("/status?problems=100").then((found) => {
    const isNamed = found.namespace !== "default"; // which is no name that anybody gave
    head.replaceChildren(make("h2", {}, isNamed ? found.namespace : found.location),
      about(isNamed ? found.location : "namespace default"), figures(found.counts),
      ...found.warnings.map((said) => make("p", { class: "error" }, said)),
      found.problems.length ? make("details", {}, make("summary", {}, "Segments that are not complete"),
        folded(found.problems, ([id, index, why]) => make("div", {}, link(`${id}, segment ${index + 1}`, "documents", id, `${index + 1}`), ` ${why}`), "", "segment")) : "");
  }, (error) => head.replaceChildren(make("p", { class: "error", role: "alert" }, error.message)));
  if (first.total < 1000) await status;
  if (!first.length && !said.length) return [head, nothing()];
  return [head, await askBox(), make("div", { class: "columns three" },
    make("section", {}, make("h3", {}, link("Documents", "documents")), list(first.map(documentRow), "none"), more(first, "document", "documents"),
      said.length ? [make("h3", {}, link("Conversations", "conversations")), list(said.map(sessionRow), ""), more(said, "conversation", "conversations")] : []),
    make("section", {}, make("h3", {}, link("Named most often", "entities")),
      list(named.map((one) => [entityLink(one.key, one.name), " ", quiet(count(one.segments, "segment"))]), "No entity was found.")),
    make("section", {}, make("h3", {}, link("Asked last", "trails")), list(asked.map(trailRow), "Nothing has been asked yet.")))];
}

export async function entities() {
  const found = await call("/entities?limit=1000");
  const row = (one) => make("div", {}, entityLink(one.key, one.name), " ",
    quiet([one.type.toLowerCase(), count(one.segments, "segment")].filter(Boolean).join(" · ")));
  return [make("h2", {}, "Entities"), about(found.length === 1000 ? "the 1,000 most mentioned; find others by name" : "the most mentioned come first"),
    found.length ? folded(found, row, "", "entitie", MANY) : empty("No entity was found in the texts.")];
}

export async function entity(name) {
  const address = `/around/${encodeURIComponent(name)}`;
  const view = await part(address, 0, SOME);
  const names = { ...view.neighbours };
  const named = (key) => (key === view.key ? view.name : names[key] ?? key);
  const other = (one) => (one.head === view.key ? one.tail : one.head);
  const { write } = await allowed();
  const statement = (fact) => factBox(fact, write);
  // The first statement stands for all, unless a chat model put them into words of its own.
  const statements = (one) => {
    const isMerged = one.statements > 1 && one.facts.length > 0 && !one.description.includes(one.facts[0].description);
    const shown = isMerged || !one.facts.length ? make("div", {}, one.head === view.key ? "" : "← ", one.description) : statement(one.facts[0]);
    const rest = one.facts.slice(isMerged ? 0 : 1);
    const isCut = one.facts.length < one.statements;
    return [shown, rest.length ? make("details", { class: "small" }, make("summary", {}, isMerged ? "the statements" : "the others", isCut ? `: the first ${rest.length}` : ""), rest.map(statement)) : ""];
  };
  const relation = (one) => make("div", {}, entityLink(other(one), named(other(one))), " ",
    quiet([one.type, one.statements > 1 && count(one.statements, "statement")].filter(Boolean).join(" · ")), ...statements(one),
    one.questions.length ? make("p", { class: "small quiet" }, `settled: ${one.questions.join(" ")}`) : "");
  const more = (what, render) => async (shown) => {
    const next = await part(address, shown, SOME);
    Object.assign(names, next.neighbours);
    return next[what].map(render);
  };
  const { totals } = view;
  return [make("p", { class: "crumbs" }, link("Entities", "entities")),
    make("h2", {}, view.name),
    about(view.type ? view.type.toLowerCase() : "type unknown", count(totals.segments, "segment"), count(totals.relations, "relation")),
    ...Object.entries(view.properties).map(([name, [last, ...before]]) => make("p", {}, `${name}: ${last} `, before.length ? quiet(`before: ${before.join("; ")}`) : "")),
    make("div", { class: "columns" },
      make("section", {}, make("h3", {}, "Neighbours"),
        small(view.key),
        make("h3", {}, "Names in the text"),
        make("p", {}, view.forms.flatMap(([form, times]) => [chip(`${form} ${number(times)}`), " "])),
        view.questions.length ? [make("h3", {}, view.segments.length < totals.segments ? "Questions about the segments shown" : "Questions that added it"),
          list(view.questions.map((question) => question.text), "")] : null),
      make("section", {}, make("h3", {}, "Relations"),
        totals.relations ? long(items(), view.relations.slice(0, FEW).map(relation), totals.relations, more("relations", relation), "relation") : quiet("none"),
        make("h3", {}, "Segments"),
        long(items(), view.segments.slice(0, FEW).map((one) => segmentBox(one)), totals.segments, more("segments", (one) => segmentBox(one)), "segment")))];
}

export const readOnly = () => make("p", { class: "notice" }, make("span", {}, "This page changes nothing. To decide here, start it with ", code("qrmem view --write"), "."));

const WHY = { exact: "the same name", similar: "similar", user: "your decision" };

// By which rule two forms of a name count as one, worked out from how they stand there.
function rule(name, into) {
  const words = (text) => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  const [own, other] = [words(name), words(into)];
  const holds = (all, part) => part.every((word) => all.includes(word));
  if (holds(other, own)) return "a part of the name";
  if (holds(own, other)) return "the name with more words";
  if (own.at(-1) === other.at(-1)) return "the same last name";
  const initials = (all) => all.map((word) => word[0]).join("");
  if (initials(other) === own.join("") || initials(own) === other.join("")) return "its initials";
  return initials(own) === initials(other) ? "a shorter spelling" : "a form of the name";
}

export async function merges() {
  const { write } = await allowed();
  const holder = make("div");
  const filter = make("input", { type: "search", id: "filter", size: "24", autocomplete: "off" });
  let latest = 0;
  const load = async () => {
    const mine = ++latest;
    const [total, shown] = await paged(`/merges?name=${encodeURIComponent(filter.value.trim())}`, (merge) => mergeRow(merge, write), "merged name");
    if (mine === latest) holder.replaceChildren(total ? shown() : empty(filter.value.trim() ? "No merged name has these words." : "No names are merged."));
    return total;
  };
  filter.addEventListener("input", () => load().catch((error) => holder.replaceChildren(make("p", { class: "error", role: "alert" }, error.message))));
  const total = await load();
  return [make("h2", {}, "Merged names"), about("Names that were merged into one entity; the doubtful first. Your decision overrides the rules and is kept."), write ? null : readOnly(),
    total ? make("p", {}, make("label", { for: "filter" }, "Filter by name "), filter) : null, make("div", { id: "undo" }), holder];
}

function mergeRow(merge, write) {
  const why = quiet(merge.reason === "similar" ? `${WHY.similar} (${merge.score.toFixed(2)})` : WHY[merge.reason] ?? rule(merge.name, merge.into));
  const row = make("div", { class: "row" }, make("div", {}, `${merge.name} → `, entityLink(merge.entity, merge.into), " ", why));
  if (!write) return row;
  const decide = (same) => call("/merges", { first: merge.name, second: merge.into, same });
  const button = (text, work) => {
    const made = make("button", { type: "button", class: "light" }, text);
    made.addEventListener("click", () => trying(made, work));
    return made;
  };
  const right = button("Right", async () => { await decide(true); why.textContent = WHY.user; right.remove(); });
  const again = async () => { await decide(true); window.dispatchEvent(new Event("show-again")); };
  const apart = button(`Keep “${merge.name}” apart`, async () => {
    await decide(false);
    const undo = button("Merge them again", again);
    document.getElementById("undo").replaceChildren(make("p", { class: "notice" },
      `“${merge.name}” and “${merge.into}” are kept apart.`, undo));
    row.remove();
    undo.focus();
  });
  right.setAttribute("aria-label", `Right: “${merge.name}” is “${merge.into}”`);
  row.append(make("span", { class: "decide" }, merge.reason === "user" ? "" : right, apart));
  return row;
}

async function trying(button, work) {
  button.disabled = true;
  try {
    await work();
    document.getElementById("said").textContent = "done";
  } catch (error) {
    button.disabled = false;
    document.getElementById("undo").replaceChildren(make("p", { class: "error", role: "alert" }, error.message));
  }
}

export async function costs() {
  const rows = await call("/usage?by=stage");
  const title = make("h2", {}, "Costs by stage");
  if (!rows.length) return [title, empty("No chat model and no embedding server has been called, so nothing was paid.")];
  const known = rows.filter((row) => row.cost !== null);
  const sum = (name) => rows.reduce((total, row) => total + row[name], 0);
  const paid = known.reduce((total, row) => total + row.cost, 0);
  const weight = (row) => (paid ? (row.cost ?? 0) / paid : (row.tokens_in + row.tokens_out) / (sum("tokens_in") + sum("tokens_out") || 1));
  const share = (row) => {
    const bar = make("span", { class: "share" });
    bar.style.width = `${Math.max(weight(row) * 100, 1)}%`;
    return bar;
  };
  const money = (value) => (value === null ? "unknown" : value.toFixed(4));
  const line = (row) => [make("span", {}, row.key, share(row)), row.phase === "construction" ? "reading" : "answering",
    number(row.calls), number(row.from_cache), number(row.tokens_in), number(row.tokens_out), money(row.cost)];
  return [title, about(paid ? "bars: share of the money" : "bars: share of the tokens", known.length < rows.length ? "some models have no price" : ""),
    table("Costs", ["stage", "while", "calls", "from cache", "prompt tokens", "reply tokens", "USD"], rows.map(line),
      { numbers: [2, 3, 4, 5, 6], classes: { 0: "name", 1: "nowrap" },
        foot: ["all", "", ...["calls", "from_cache", "tokens_in", "tokens_out"].map((name) => number(sum(name))), known.length ? money(paid) : "unknown"] })];
}
