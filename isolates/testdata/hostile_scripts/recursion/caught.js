// recursion whose every level catches the overflow and goes on
// outcome: cpu, exception, ok

export default { fetch() { const f = () => { try { f(); } catch { f(); } }; f(); return new Response("ok"); } };
