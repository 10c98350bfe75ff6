// Conversations: by user and session, with what was noted, what holds and what was corrected.

import { call, part } from "./call.js";
import { about, chip, code, count, day, empty, folded, link, long, make, quiet, when } from "./dom.js";

const SOME = 50;
const named = (session) => session || "without a name";
const ofUser = (user) => `u:${user}`;
const place = (one) => ["conversations", ofUser(one.user), `s:${one.session}`];

export function sessionRow(one) {
  const days = [...new Set([day(one.first), day(one.last)])].filter(Boolean).join(" – ");
  return make("div", {}, link(named(one.session), ...place(one)), " ",
    quiet([count(one.turns, "turn"), one.speakers.join(", "), days].filter(Boolean).join(" · ")));
}

export async function conversations() {
  const rows = await part("/sessions", 0, 1000);
  const title = make("h2", {}, "Conversations");
  if (!rows.length) return [title, empty("Nobody has said anything yet: ", code("qrmem chat"))];
  const users = new Map();
  for (const one of rows) users.set(one.user, [...(users.get(one.user) ?? []), one]);
  return [title, about(count(rows.total, "session"), count(users.size, "user")),
    ...[...users].map(([user, own]) => make("section", {},
      make("h3", {}, user ? link(user, "conversations", ofUser(user)) : "No user named"), folded(own, sessionRow, "", "session")))];
}

export async function conversation(whose, which) {
  const user = whose.replace(/^u:/, "");
  const crumbs = make("p", { class: "crumbs" }, link("Conversations", "conversations"),
    which && user ? [" / ", link(user, "conversations", ofUser(user))] : null);
  return which === undefined ? [crumbs, ...await ofOne(user)] : [crumbs, ...await session(user, which.replace(/^s:/, ""))];
}

async function ofOne(user) {
  const rows = (await part("/sessions", 0, 1000)).filter((one) => one.user === user);
  return [make("h2", {}, user || "No user named"), about(count(rows.length, "session")),
    make("div", { class: "columns" },
      make("section", {}, make("h3", {}, "Sessions"), folded(rows, sessionRow, "none", "session")),
      await factsOf(user))];
}

async function session(user, name) {
  const address = `/conversation?session=${encodeURIComponent(name)}&user=${encodeURIComponent(user)}`;
  const rows = await part(address, 0, SOME);
  let date = "";
  const render = (turn) => {
    const isNewDay = day(turn.at) !== date;
    date = day(turn.at);
    return turnBox(turn, isNewDay);
  };
  const next = async (shown) => (await part(address, shown, SOME)).map(render);
  return [make("h2", {}, named(name)), about(user, count(rows.total, "turn")),
    make("div", { class: "columns talk" },
      make("section", {}, make("h3", {}, "What was said"),
        rows.length ? long(make("div", { class: "turns" }), rows.map(render), rows.total, next, "turn") : quiet("Nothing.")),
      await factsOf(user))];
}

function turnBox(turn, isNewDay) {
  const time = turn.at ? new Date(turn.at) : null;
  const clock = time && !Number.isNaN(time.getTime()) ? time.toLocaleTimeString(undefined, { timeStyle: "short" }) : "";
  return make("div", { class: turn.role === "user" ? "turn own" : "turn" },
    isNewDay && turn.at ? make("p", { class: "day" }, day(turn.at)) : null,
    make("div", { class: "bubble" },
      make("div", { class: "small" }, make("strong", {}, turn.speaker || turn.role), " ", quiet(clock), " ",
        link(`turn ${turn.number}`, "documents", turn.id)),
      make("div", { class: "running" }, turn.text),
      turn.facts.map((text) => make("p", { class: "small" }, chip("noted"), " ", text)),
      turn.corrected_by.map((later) => make("p", { class: "small" }, chip("corrected later", "dropped"), " ",
        link(`turn ${later.number}`, "documents", later.id), ` “${later.text}” `, quiet(when(later.at))))));
}

async function factsOf(user) {
  const title = make("h3", {}, user ? `Facts about what ${user} said` : "Facts");
  if (!user) return make("section", {}, title, quiet("They are listed by user, and these turns name none."));
  const facts = await call(`/facts?user=${encodeURIComponent(user)}&superseded=true&limit=1000`);
  return make("section", {}, title, facts.length ? folded(facts, factBox, "", "fact") : quiet("No fact was found."));
}

export const times = (fact) => [fact.said_at ? `said ${day(fact.said_at)}` : "", fact.valid_from ? `from ${fact.valid_from}` : "",
  fact.valid_until ? `until ${fact.valid_until}` : ""].filter(Boolean).join(", ");

function factBox(fact) {
  const isOver = fact.superseded_by !== "" || (fact.valid_until !== "" && fact.valid_until < new Date().toISOString().slice(0, fact.valid_until.length));
  return make("div", {}, isOver ? [chip("superseded", "dropped"), " ", make("s", {}, fact.description)] : fact.description, " ",
    make("span", { class: "small" }, link(times(fact) || "source", "documents", fact.document_id)),
    fact.then ? make("p", { class: "small" }, `${fact.superseded_at ? `Since ${day(fact.superseded_at)}` : "Now"}: ${fact.then}`) : null);
}
