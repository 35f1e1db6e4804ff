// What the extension needs that does not depend on VS Code.
const { spawn } = require("node:child_process");

// Returns why the language server of a command does not start, or undefined. A server without input ends at once.
exports.failureOf = (command) =>
  new Promise((resolve) => {
    const server = spawn(command, ["lsp"], { stdio: ["ignore", "ignore", "pipe"] });
    let errors = "";
    server.stderr.on("data", (text) => (errors += text));
    const advice = "Run `pip install 'archlang[lsp]'`, or set archlang.command to the path of archlang.";
    server.on("error", (error) => resolve(`The command \`${command}\` does not start (${error.code}). ${advice}`));
    server.on("close", (code) => {
      const reason = errors.trim().replace(/^error: /, "").replace(/\n\s*help: /, "; ");
      resolve(code === 0 ? undefined : `The command \`${command} lsp\` failed: ${reason}`);
    });
  });

// Returns the name of the recipe around a line, or undefined.
exports.recipeAt = (lines, line) => {
  for (let at = line; at >= 0; at--) {
    const recipe = /^recipe\s+([A-Za-z_]\w*)/.exec(lines[at]);
    if (recipe) return recipe[1];
    if (at < line && /^\}/.test(lines[at])) return undefined;
  }
  return undefined;
};

// Returns a page that shows a picture. As an image, it can neither run a script nor load anything.
exports.page = (picture) => `<!doctype html>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<style>body { padding: 0; background: white } img { max-width: 100% }</style>
<img alt="The picture of the architecture" src="data:image/svg+xml;base64,${Buffer.from(picture).toString("base64")}">
`;
