// Asks the server for a part of the memory.

export async function call(path, body) {
  const headers = { authorization: `Bearer ${sessionStorage.getItem("token") ?? ""}` };
  const options = { headers };
  if (body !== undefined) {
    headers["content-type"] = "application/json";
    Object.assign(options, { method: "POST", body: JSON.stringify(body) });
  }
  const answer = await fetch(path, options);
  const value = await answer.json();
  if (answer.status === 401) throw new Error("This address is no longer valid: open the one that `qrmem view` printed last.");
  if (!answer.ok) throw new Error(value.error ?? `${answer.status}`);
  return Array.isArray(value) && answer.headers.has("x-total-count")
    ? Object.assign(value, { total: Number(answer.headers.get("x-total-count")) }) : value;
}

// A part of a list that the server cuts: `[rows, total]`.
export const part = (path, offset, limit) => call(`${path}${path.includes("?") ? "&" : "?"}offset=${offset}&limit=${limit}`);
