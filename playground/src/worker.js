// Runs the compiler within the page: Python in WebAssembly, with the packages that `archlang play --build` bundled.
import { loadPyodide } from "./pyodide/pyodide.mjs";

const begin = async () => {
  self.postMessage({ progress: "Loading Python …" });
  const [python, packages] = await Promise.all([
    loadPyodide({ indexURL: new URL("pyodide/", self.location.href).href }),
    fetch("packages.zip").then((response) => {
      if (!response.ok) throw new Error("packages.zip is missing");
      return response.arrayBuffer();
    }),
  ]);
  self.postMessage({ progress: "Loading the compiler …" });
  python.unpackArchive(packages, "zip", { extractDir: "/packages" });
  return python.runPython(`
import sys, json
sys.path.insert(0, "/packages")
from archlang.play.service import Service
_service = Service("/program")
lambda request: json.dumps(_service.answer(json.loads(request)))
`);
};

const ready = begin();
ready.catch((error) => self.postMessage({ failure: `the compiler cannot be loaded: ${error.message}` }));
self.onmessage = async ({ data: { id, request } }) => {
  const answer = await ready.catch(() => null);
  if (!answer) return;
  let text;
  try {
    text = answer(request);
  } catch (error) {
    text = JSON.stringify({ error: { message: `internal error: ${error.message}`, remedy: "this is a bug in archlang; please report it" } });
  }
  self.postMessage({ id, answer: text });
};
