-- Drives Neovim for `test_neovim.py`, which sets ARCHLANG_SESSION to a JSON file: the `folder` and what
-- to do. Writes what happened to `result.json` in the folder. The configuration starts the server.
local file = assert(io.open(os.getenv("ARCHLANG_SESSION")))
local session = vim.fn.json_decode(file:read("*a"))
file:close()
local LIMIT = 60000 -- milliseconds: the machine may be busy
local servers = vim.lsp.get_clients or vim.lsp.get_active_clients

local function open(name)
  vim.cmd("silent edit " .. session.folder .. "/" .. name)
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
    local server = servers()[1]
    return server and server.initialized and vim.lsp.buf_is_attached(0, server.id)
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
  done.servers = #servers()
  return done
end)
local written = assert(io.open(session.folder .. "/result.json", "w"))
written:write(vim.fn.json_encode(ok and result or { failure = tostring(result) }))
written:close()
vim.cmd("qall!")
