-- Drives Neovim for `test_neovim.py`, which sets ARCHLANG_SESSION to a JSON file: the `folder` and what
-- to do. Writes what happened to `result.json` in the folder. In Neovim 0.11 or later, init.lua starts the server.
local file = assert(io.open(os.getenv("ARCHLANG_SESSION")))
local session = vim.fn.json_decode(file:read("*a"))
file:close()
local LIMIT = 60000 -- milliseconds: the machine may be busy
local client

local function open(name)
  vim.cmd("silent edit " .. session.folder .. "/" .. name)
  if vim.lsp.enable then
    return -- init.lua starts the server
  end
  if not client then
    client = assert(vim.lsp.start_client({ name = "archlang", cmd = { "archlang", "lsp" }, root_dir = session.folder }))
  end
  vim.lsp.buf_attach_client(0, client)
end

local function await(what, condition)
  assert(vim.wait(LIMIT, condition, 20), what .. " did not happen")
end

local function text()
  return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), "\n") .. "\n"
end

-- Puts the cursor on the first mistake of a file and accepts the first code action that is offered.
local function correct(name)
  open(name)
  await("a diagnostic of " .. name, function() return #vim.diagnostic.get(0) > 0 end)
  local mistake = vim.diagnostic.get(0)[1]
  vim.api.nvim_win_set_cursor(0, { mistake.lnum + 1, mistake.col })
  local before, title = text(), nil
  vim.ui.select = function(items, options, choose)
    title = options.format_item(items[1])
    choose(items[1], 1)
  end
  vim.lsp.buf.code_action()
  await("the edit of " .. name, function() return text() ~= before end)
  await("a text without mistakes in " .. name, function() return #vim.diagnostic.get(0) == 0 end)
  return { code = mistake.code, title = title or "the only action", text = text() }
end

-- Renames what is under the cursor, and saves every file.
local function rename(place)
  open(place.file)
  await("the server", function()
    local attached = vim.lsp.enable and vim.lsp.get_clients({ bufnr = 0 })[1] or vim.lsp.get_client_by_id(client)
    return attached and attached.initialized
  end)
  vim.api.nvim_win_set_cursor(0, { place.line, place.column })
  local before = text()
  vim.lsp.buf.rename(place.name)
  await("the rename", function() return text() ~= before end)
  vim.cmd("silent wall")
end

local ok, result = pcall(function()
  local done = { corrected = {} }
  for _, name in ipairs(session.mistakes or {}) do
    table.insert(done.corrected, correct(name))
  end
  if session.rename then
    rename(session.rename)
  end
  return done
end)
local written = assert(io.open(session.folder .. "/result.json", "w"))
written:write(vim.fn.json_encode(ok and result or { failure = tostring(result) }))
written:close()
vim.cmd("qall!")
