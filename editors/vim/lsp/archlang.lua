-- Neovim 0.11 or later reads how to start the server from here.
return { cmd = { "archlang", "lsp" }, filetypes = { "arch" }, root_markers = { ".git" } }
