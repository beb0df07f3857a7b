// a pattern with a million nested groups
// outcome: exception

export default { fetch() { new RegExp("(".repeat(1e6) + ")".repeat(1e6)); return new Response("ok"); } };
