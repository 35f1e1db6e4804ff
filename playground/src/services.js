// The two services of the page: the server that sent it, or a worker that runs the compiler in the page. Each is a
// function from a request to a promise of its answer.

const answered = ({ result, error }) => {
  if (error) throw new Error(error.remedy ? `${error.message}: ${error.remedy}` : error.message);
  return result;
};

const TOKEN = "archlang-token";

// The server's token is in the address that the command printed. It is kept for this tab alone.
export const server = (fragment) => {
  if (fragment.has("token")) sessionStorage.setItem(TOKEN, fragment.get("token"));
  return async (method, fields) => {
    if (!sessionStorage.getItem(TOKEN)) throw new Error("this tab has no token: open the address that `archlang play` printed");
    const response = await fetch("api", {
      method: "POST",
      headers: { "Content-Type": "application/json", Authorization: `Bearer ${sessionStorage.getItem(TOKEN) ?? ""}` },
      body: JSON.stringify({ ...fields, method }),
    }).catch(() => {
      throw new Error("the server does not answer: start `archlang play` again");
    });
    if (!response.ok) throw new Error((await response.text()).trim());
    return answered(await response.json());
  };
};

export const worker = (progress) => {
  const waiting = new Map();
  let last = 0, failure = null;
  const thread = new Worker("playground_worker.js", { type: "module" });
  const fail = (message) => {
    failure = new Error(message);
    for (const { reject } of waiting.values()) reject(failure);
    waiting.clear();
  };
  thread.onmessage = ({ data }) => {
    if (data.progress) return progress(data.progress);
    if (data.failure) return fail(data.failure);
    waiting.get(data.id)?.resolve(data.answer);
    waiting.delete(data.id);
  };
  thread.onerror = (event) => {
    event.preventDefault();
    fail(`the compiler cannot be loaded: ${event.message ?? "its files are missing"}`);
  };
  return async (method, fields) => {
    if (failure) throw failure;
    const id = ++last;
    const answer = new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
    thread.postMessage({ id, request: JSON.stringify({ ...fields, method }) });
    return answered(JSON.parse(await answer));
  };
};
