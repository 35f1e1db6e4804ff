// Written by playground/build.mjs, from sources a87b5f32d8225155bd4cd7112c060edf3c93932dec5551a8b4a7b14de5a83db8
import{loadPyodide as i}from"./pyodide/pyodide.mjs";var n=async()=>{self.postMessage({progress:"Loading Python …"});let[e,r]=await Promise.all([i({indexURL:new URL("pyodide/",self.location.href).href}),fetch("packages.zip").then(s=>{if(!s.ok)throw new Error("packages.zip is missing");return s.arrayBuffer()})]);return self.postMessage({progress:"Loading the compiler …"}),e.unpackArchive(r,"zip",{extractDir:"/packages"}),e.runPython(`
import sys, json
sys.path.insert(0, "/packages")
from archlang.play.service import Service
_service = Service("/program")
lambda request: json.dumps(_service.answer(json.loads(request)))
`)},t=n();t.catch(e=>self.postMessage({failure:`the compiler cannot be loaded: ${e.message}`}));self.onmessage=async({data:{id:e,request:r}})=>{let s=await t.catch(()=>null);if(!s)return;let a;try{a=s(r)}catch(o){a=JSON.stringify({error:{message:`internal error: ${o.message}`,remedy:"this is a bug in archlang; please report it"}})}self.postMessage({id:e,answer:a})};
