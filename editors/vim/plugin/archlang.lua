-- Starts the server in Neovim, for all programs the same one.
local server = { name = "archlang", cmd = { "archlang", "lsp" } }
local client

local function start(arguments)
  if vim.lsp.start then
    vim.lsp.start(server) -- since 0.8
    return
  end
  client = client and vim.lsp.get_client_by_id(client) and client or vim.lsp.start_client(server)
  if client then
    vim.lsp.buf_attach_client(arguments.buf, client)
  end
end

if vim.lsp.enable then
  vim.lsp.enable("archlang") -- since 0.11: reads lsp/archlang.lua
elseif vim.lsp then
  vim.api.nvim_create_autocmd("FileType", { pattern = "arch", callback = start })
end
