// unicode sets, case-insensitive, many times
// outcome: cpu, exception, memory, ok

export default { fetch() { new RegExp("[\\p{L}--[a-z]]".repeat(3000), "vi").test("ä".repeat(3000)); return new Response("ok"); } };
