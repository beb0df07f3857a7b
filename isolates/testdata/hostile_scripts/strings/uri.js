// encodeURIComponent of a string that grows ninefold
// outcome: cpu, memory, exception
// strays

export default { fetch() { return new Response(encodeURIComponent("€".repeat(2 ** 25)).slice(0, 1)); } };
