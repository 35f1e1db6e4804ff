autocmd BufNewFile,BufRead *.arch setfiletype arch
