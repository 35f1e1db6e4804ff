" Written by `python -m editors` from the grammar of archlang.
if exists("b:current_syntax")
  finish
endif

syntax case match
syntax match archPunctuation '\v%([()[\]{},:])'
syntax match archOperator '\v%(\=\=|!\=|\<\=|\>\=|-\>|\<-|\|\>|\.\.\.?|\+-|[=<>+\-*/%±])'
syntax match archName '\v%(%([A-Za-z_][A-Za-z0-9_]*%(\.[A-Za-z_][A-Za-z0-9_]*)+|%(%(let|return|emit|if|else|repeat|stack|in|when|and|or|not|true|false)>)@![A-Za-z_][A-Za-z0-9_]*>%(\.[A-Za-z_])@!))'
syntax match archFunction '\v%(%([A-Za-z_][A-Za-z0-9_]*%(\.[A-Za-z_][A-Za-z0-9_]*)+|%(%(let|return|emit|if|else|repeat|stack|in|when|and|or|not|true|false)>)@![A-Za-z_][A-Za-z0-9_]*>%(\.[A-Za-z_])@!))%(%([[(])@=)@='
syntax match archType '\v%(%(tokens|seq|vec|map|prob|probs|address|pointer|chunks|number|data|logits)>%(\.[A-Za-z_])@!)%(%(\[[^[\]]*\]%(\()@!)@=)@='
syntax match archKeyword '\v%(%(let|return|emit|if|repeat|stack|else|in|when|and|or|not)>%(\.[A-Za-z_])@!)'
syntax match archConstant '\v%(%(true|false)>%(\.[A-Za-z_])@!)'
syntax match archKeyword '\v%(%(growing|log)>%(\.[A-Za-z_])@!)%(%([ \t]*%([,{}#]|$))@=)@='
syntax match archKeyword '\v%(claims)%(>%([ \t]+-)@=)@='
syntax match archKeyword '\v%(where)%(>%([ \t]+[^=:,\])\t ]|[ \t]*$)@=)@='
syntax match archKeyword '\v%(%(absent|acts|after|as|at|average|best|block|by|carry|causal|claim|claims|column|columns|costs|cuts|demands|depends|drawn|evenly|experts|extern|from|gives|gradients|growing|halting|into|log|loss|maps|median|model|of|on|optimizer|pure|python|random|reads|recipe|records|row|scan|search|settings|settled|sizes|stops|table|task|test|train|training|truncated|use|vary|where|with)>%(\.[A-Za-z_])@!)%(%([ \t]+%(%([A-Za-z_][A-Za-z0-9_]*%(\.[A-Za-z_][A-Za-z0-9_]*)+|%(%(let|return|emit|if|else|repeat|stack|in|when|and|or|not|true|false)>)@![A-Za-z_][A-Za-z0-9_]*>%(\.[A-Za-z_])@!)|["0-9]))@=)@='
syntax match archKeyword '\v%(%(from|train|use|with)>%(\.[A-Za-z_])@!)%(%([ \t]+)%(%([A-Za-z_][A-Za-z0-9_]*%(\.[A-Za-z_][A-Za-z0-9_]*)+|%(%(let|return|emit|if|else|repeat|stack|in|when|and|or|not|true|false)>)@![A-Za-z_][A-Za-z0-9_]*>%(\.[A-Za-z_])@!)))@='
syntax match archFunction '\v%(<%(%(from|train|use|with)>%(\.[A-Za-z_])@!)%([ \t]+))@200<=%(%([A-Za-z_][A-Za-z0-9_]*%(\.[A-Za-z_][A-Za-z0-9_]*)+|%(%(let|return|emit|if|else|repeat|stack|in|when|and|or|not|true|false)>)@![A-Za-z_][A-Za-z0-9_]*>%(\.[A-Za-z_])@!))'
syntax match archKeyword '\v%(%(block|model|optimizer|recipe|settings|table|task)>%(\.[A-Za-z_])@!)%(%([ \t]+)%(%(%(let|return|emit|if|else|repeat|stack|in|when|and|or|not|true|false)>)@![A-Za-z_][A-Za-z0-9_]*>%(\.[A-Za-z_])@!))@='
syntax match archDefinition '\v%(<%(%(block|model|optimizer|recipe|settings|table|task)>%(\.[A-Za-z_])@!)%([ \t]+))@200<=%(%(%(let|return|emit|if|else|repeat|stack|in|when|and|or|not|true|false)>)@![A-Za-z_][A-Za-z0-9_]*>%(\.[A-Za-z_])@!)'
syntax match archKeyword '\v%(stops)%(%([ \t]+)%(gradients)>)@='
syntax match archKeyword '\v%(<%(stops)%([ \t]+))@200<=%(gradients)%(>)@='
syntax match archKeyword '\v%(drawn)%(%([ \t]+)%(by)>)@='
syntax match archKeyword '\v%(<%(drawn)%([ \t]+))@200<=%(by)%(>)@='
syntax match archKeyword '\v%(depends)%(%([ \t]+)%(on)>)@='
syntax match archKeyword '\v%(<%(depends)%([ \t]+))@200<=%(on)%(>)@='
syntax match archKeyword '\v%(cuts)%(%([ \t]+)%(evenly)>)@='
syntax match archKeyword '\v%(<%(cuts)%([ \t]+))@200<=%(evenly)%(>)@='
syntax match archKeyword '\v%(best)%(%([ \t]+)%(of)>)@='
syntax match archKeyword '\v%(<%(best)%([ \t]+))@200<=%(of)%(>)@='
syntax match archKeyword '\v%(average)%(%([ \t]+)%(of)>)@='
syntax match archKeyword '\v%(<%(average)%([ \t]+))@200<=%(of)%(>)@='
syntax match archKeyword '\v%(row)%(%([ \t]+)%("[^"\r\n]*")%([ \t]+)%(%(absent>|claims>)@!%(%(let|return|emit|if|else|repeat|stack|in|when|and|or|not|true|false)>)@![A-Za-z_][A-Za-z0-9_]*>%(\.[A-Za-z_])@!))@='
syntax match archString '\v%(<%(row)%([ \t]+))@200<=%("[^"\r\n]*")%(%([ \t]+)%(%(absent>|claims>)@!%(%(let|return|emit|if|else|repeat|stack|in|when|and|or|not|true|false)>)@![A-Za-z_][A-Za-z0-9_]*>%(\.[A-Za-z_])@!))@='
syntax match archFunction '\v%(<%(row)%([ \t]+)%("[^"\r\n]*")%([ \t]+))@200<=%(%(absent>|claims>)@!%(%(let|return|emit|if|else|repeat|stack|in|when|and|or|not|true|false)>)@![A-Za-z_][A-Za-z0-9_]*>%(\.[A-Za-z_])@!)'
syntax match archKeyword '\v%(%(and|else|emit|if|in|let|loss|not|or|repeat|return|stack|when|where)>%(\.[A-Za-z_])@!)%(%([ \t]+)%(%(absent|acts|after|as|at|average|best|block|by|carry|causal|claim|claims|column|columns|costs|cuts|demands|depends|drawn|evenly|experts|extern|from|gives|gradients|growing|halting|into|log|loss|maps|median|model|of|on|optimizer|pure|python|random|reads|recipe|records|row|scan|search|settings|settled|sizes|stops|table|task|test|train|training|truncated|use|vary|where|with)>%(\.[A-Za-z_])@!)%([[(])@!)@='
syntax match archName '\v%(<%(%(and|else|emit|if|in|let|loss|not|or|repeat|return|stack|when|where)>%(\.[A-Za-z_])@!)%([ \t]+))@200<=%(%(absent|acts|after|as|at|average|best|block|by|carry|causal|claim|claims|column|columns|costs|cuts|demands|depends|drawn|evenly|experts|extern|from|gives|gradients|growing|halting|into|log|loss|maps|median|model|of|on|optimizer|pure|python|random|reads|recipe|records|row|scan|search|settings|settled|sizes|stops|table|task|test|train|training|truncated|use|vary|where|with)>%(\.[A-Za-z_])@!)%(%([[(])@!)@='
syntax match archOperator '\v%(\=\=|!\=|\<\=|\>\=|-\>|\<-|\|\>|\.\.\.?|\+-|[=<>+\-*/%±])%(%([ \t]*)%(%(absent|acts|after|as|at|average|best|block|by|carry|causal|claim|claims|column|columns|costs|cuts|demands|depends|drawn|evenly|experts|extern|from|gives|gradients|growing|halting|into|log|loss|maps|median|model|of|on|optimizer|pure|python|random|reads|recipe|records|row|scan|search|settings|settled|sizes|stops|table|task|test|train|training|truncated|use|vary|where|with)>%(\.[A-Za-z_])@!)%([[(])@!)@='
syntax match archName '\v%(%(\=\=|!\=|\<\=|\>\=|-\>|\<-|\|\>|\.\.\.?|\+-|[=<>+\-*/%±])%([ \t]*))@200<=%(%(absent|acts|after|as|at|average|best|block|by|carry|causal|claim|claims|column|columns|costs|cuts|demands|depends|drawn|evenly|experts|extern|from|gives|gradients|growing|halting|into|log|loss|maps|median|model|of|on|optimizer|pure|python|random|reads|recipe|records|row|scan|search|settings|settled|sizes|stops|table|task|test|train|training|truncated|use|vary|where|with)>%(\.[A-Za-z_])@!)%(%([[(])@!)@='
syntax match archOperator '\v%(\|\>)%(%([ \t]*)%(%([A-Za-z_][A-Za-z0-9_]*%(\.[A-Za-z_][A-Za-z0-9_]*)+|%(%(let|return|emit|if|else|repeat|stack|in|when|and|or|not|true|false)>)@![A-Za-z_][A-Za-z0-9_]*>%(\.[A-Za-z_])@!)))@='
syntax match archFunction '\v%(%(\|\>)%([ \t]*))@200<=%(%([A-Za-z_][A-Za-z0-9_]*%(\.[A-Za-z_][A-Za-z0-9_]*)+|%(%(let|return|emit|if|else|repeat|stack|in|when|and|or|not|true|false)>)@![A-Za-z_][A-Za-z0-9_]*>%(\.[A-Za-z_])@!))'
syntax match archPunctuation '\v%([([,])%(%([ \t]*)%(%(absent|acts|after|as|at|average|best|block|by|carry|causal|claim|claims|column|columns|costs|cuts|demands|depends|drawn|evenly|experts|extern|from|gives|gradients|growing|halting|into|log|loss|maps|median|model|of|on|optimizer|pure|python|random|reads|recipe|records|row|scan|search|settings|settled|sizes|stops|table|task|test|train|training|truncated|use|vary|where|with)>%(\.[A-Za-z_])@!))@='
syntax match archName '\v%(%([([,])%([ \t]*))@200<=%(%(absent|acts|after|as|at|average|best|block|by|carry|causal|claim|claims|column|columns|costs|cuts|demands|depends|drawn|evenly|experts|extern|from|gives|gradients|growing|halting|into|log|loss|maps|median|model|of|on|optimizer|pure|python|random|reads|recipe|records|row|scan|search|settings|settled|sizes|stops|table|task|test|train|training|truncated|use|vary|where|with)>%(\.[A-Za-z_])@!)'
syntax match archPunctuation '\v%(,)%(%([ \t]*)%(from)>%([ \t]*")@=)@='
syntax match archKeyword '\v%(%(,)%([ \t]*))@200<=%(from)%(>%([ \t]*")@=)@='
syntax match archOperator '\v%(\=)%(%([ \t]*)%(%(scan|experts)>%(\.[A-Za-z_])@!)%([ \t]+%(%(let|return|emit|if|else|repeat|stack|in|when|and|or|not|true|false)>)@![A-Za-z_][A-Za-z0-9_]*>%(\.[A-Za-z_])@!)@=)@='
syntax match archKeyword '\v%(%(\=)%([ \t]*))@200<=%(%(scan|experts)>%(\.[A-Za-z_])@!)%(%([ \t]+%(%(let|return|emit|if|else|repeat|stack|in|when|and|or|not|true|false)>)@![A-Za-z_][A-Za-z0-9_]*>%(\.[A-Za-z_])@!)@=)@='
syntax match archKeyword '\v%(random)%(>%([ \t]+when>)@=)@='
syntax match archKeyword '\v%(random)%(%([ \t]+)%(in)%([ \t]+)%(training)>)@='
syntax match archKeyword '\v%(<%(random)%([ \t]+))@200<=%(in)%(%([ \t]+)%(training)>)@='
syntax match archKeyword '\v%(<%(random)%([ \t]+)%(in)%([ \t]+))@200<=%(training)%(>)@='
syntax match archKeyword '\v%(^%([ \t]*))@200<=%(%(absent|acts|after|as|at|average|best|block|by|carry|causal|claim|claims|column|columns|costs|cuts|demands|depends|drawn|evenly|experts|extern|from|gives|gradients|growing|halting|into|log|loss|maps|median|model|of|on|optimizer|pure|python|random|reads|recipe|records|row|scan|search|settings|settled|sizes|stops|table|task|test|train|training|truncated|use|vary|where|with)>%(\.[A-Za-z_])@!)%(%([ \t]*%(#|$))@=)@='
syntax match archOperator '\v%(:|-\>)%(%([ \t]*)%(%(%(let|return|emit|if|else|repeat|stack|in|when|and|or|not|true|false)>)@![A-Za-z_][A-Za-z0-9_]*>%(\.[A-Za-z_])@!))@='
syntax match archType '\v%(%(:|-\>)%([ \t]*))@200<=%(%(%(let|return|emit|if|else|repeat|stack|in|when|and|or|not|true|false)>)@![A-Za-z_][A-Za-z0-9_]*>%(\.[A-Za-z_])@!)'
syntax match archNumber '\v%([0-9]+%(_[0-9]+)*%(\.[0-9]+%(_[0-9]+)*)?%([eE][+-]?[0-9]+)?%([A-Za-z0-9_])@!)'
syntax match archString '\v%("[^"\r\n]*")'
syntax match archComment '\v%(#[^\r\n]*)' contains=@Spell
syntax match archDocumentation '\v%(##[^\r\n]*)' contains=@Spell

highlight default link archDocumentation SpecialComment
highlight default link archComment Comment
highlight default link archString String
highlight default link archNumber Number
highlight default link archKeyword Keyword
highlight default link archConstant Boolean
highlight default link archType Type
highlight default link archDefinition Structure
highlight default link archFunction Function
highlight default link archOperator Operator
highlight default link archPunctuation Delimiter

let b:current_syntax = "arch"
