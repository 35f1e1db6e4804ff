if vim.lsp.enable then
  vim.lsp.enable("archlang")
end
