// Starts the language server, and adds two commands: the picture of what is under the cursor, and a training.
const os = require("os");
const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");
const { failureOf, page, recipeAt } = require("./parts");

let client;
let panel;
let starting;

const command = () => vscode.workspace.getConfiguration("archlang").get("command");

// Starts the server, and leaves `client` undefined if it cannot be started.
const start = async () => {
  // A client whose server ends at once starts it again and again, and reports its own errors.
  const failure = await failureOf(command());
  if (failure) {
    vscode.window.showErrorMessage(failure, "Open settings").then((button) => {
      if (button) vscode.commands.executeCommand("workbench.action.openSettings", "archlang.command");
    });
    return;
  }
  // Not in the folder that is open, where Windows would look for the command first.
  const server = { command: command(), args: ["lsp"], options: { cwd: os.homedir() } };
  client = new LanguageClient("archlang", "archlang", server, { documentSelector: [{ language: "arch" }] });
  await client.start();
};

const restart = async () => {
  await starting;
  await client?.stop();
  client = undefined;
  await start();
};

const showGraph = async () => {
  const editor = vscode.window.activeTextEditor;
  if (!editor) return;
  const { line, character } = editor.selection.active;
  await starting;
  if (!client) await (starting = start());
  if (!client) return;
  const answer = await client.sendRequest("workspace/executeCommand", {
    command: "archlang.graph",
    arguments: [editor.document.uri.toString(), line, character, "svg"],
  });
  if (answer.reason) {
    vscode.window.showInformationMessage(answer.reason);
    return;
  }
  if (!panel) {
    const place = { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true };
    panel = vscode.window.createWebviewPanel("archlang.graph", answer.name, place, { enableScripts: false });
    panel.onDidDispose(() => (panel = undefined));
  }
  panel.title = answer.name;
  panel.webview.html = page(answer.picture);
};

const trainRecipe = async () => {
  const editor = vscode.window.activeTextEditor;
  if (!editor) return;
  if (!vscode.workspace.isTrusted) {
    const button = await vscode.window.showInformationMessage("Recipes of a folder that you do not trust are not trained.", "Manage trust");
    if (button) vscode.commands.executeCommand("workbench.trust.manage");
    return;
  }
  const { document, selection } = editor;
  const lines = document.getText().split(/\r?\n/);
  const recipe = recipeAt(lines, selection.active.line);
  if (!recipe) {
    vscode.window.showInformationMessage("The cursor is not in a recipe.");
    return;
  }
  if (document.isUntitled || !(await document.save())) {
    vscode.window.showInformationMessage("Save the file to train its recipe.");
    return;
  }
  const folder = vscode.workspace.getWorkspaceFolder(document.uri);
  // Without a shell, which could read a part of a file name as a command.
  const execution = new vscode.ProcessExecution(command(), ["train", document.uri.fsPath, recipe], { cwd: folder?.uri.fsPath });
  const scope = folder ?? vscode.TaskScope.Workspace;
  const task = new vscode.Task({ type: "process" }, scope, `train ${recipe}`, "archlang", execution);
  task.presentationOptions = { reveal: vscode.TaskRevealKind.Always };
  await vscode.tasks.executeTask(task);
};

exports.activate = (context) => {
  starting = start();
  context.subscriptions.push(
    vscode.commands.registerCommand("archlang.showGraph", showGraph),
    vscode.commands.registerCommand("archlang.trainRecipe", trainRecipe),
    vscode.workspace.onDidChangeConfiguration((change) => {
      if (change.affectsConfiguration("archlang.command")) starting = restart();
    }),
  );
};

exports.deactivate = () => client?.stop();
