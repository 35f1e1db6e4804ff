// Written by playground/build.mjs, from sources 3a978632aacd349b25bc11883dde93736e97bace2cf0cd72dd5c2941f8e9bf99
import{loadPyodide as i}from"./pyodide/pyodide.mjs";var n=async()=>{self.postMessage({progress:"Loading Python …"});let[e,r]=await Promise.all([i({indexURL:new URL("pyodide/",self.location.href).href}),fetch("packages.zip").then(s=>{if(!s.ok)throw new Error("packages.zip is missing");return s.arrayBuffer()})]);return self.postMessage({progress:"Loading the compiler …"}),e.unpackArchive(r,"zip",{extractDir:"/packages"}),e.runPython(`
import sys, json
sys.path.insert(0, "/packages")
from archlang.play.service import Service
_service = Service("/program")
lambda request: json.dumps(_service.answer(json.loads(request)))
`)},t=n();t.catch(e=>self.postMessage({failure:`the compiler cannot be loaded: ${e.message}`}));self.onmessage=async({data:{id:e,request:r}})=>{let s=await t.catch(()=>null);if(!s)return;let a;try{a=s(r)}catch(o){a=JSON.stringify({error:{message:`internal error: ${o.message}`,remedy:"this is a bug in archlang; please report it"}})}self.postMessage({id:e,answer:a})};
