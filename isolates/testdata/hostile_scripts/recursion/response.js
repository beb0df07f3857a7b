// the runtime called at the very end of the stack
// outcome: ok

export default { fetch() { let made; const f = () => { try { f(); } catch { try { made = new Response("ok"); made.clone(); new URL("http://h/é?a"); new Request("http://h/"); setTimeout(f, 1); } catch {} } }; f(); return made ?? new Response("ok"); } };
