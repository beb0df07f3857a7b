// a URL of 10 MB
// outcome: cpu, memory, exception, ok

export default { fetch() { const u = new URL("http://h/" + "a/../".repeat(2e6) + "?" + "ä".repeat(1e6)); u.pathname = "é".repeat(1e6); u.searchParams.append("x", "y"); return new Response("ok"); } };
