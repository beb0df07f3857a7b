// hosts of a megabyte, of dots, of percent signs and of punycode
// outcome: cpu, memory, exception, ok

export default { fetch() { for (const h of ["a".repeat(1e6), "a.".repeat(5e5), "%61".repeat(3e5), "xn--" + "a".repeat(1e6), "ä".repeat(1e6), "1.".repeat(1e5), "[" + ":".repeat(1e6) + "]", "\u0345".repeat(1e5)]) { try { new URL("http://" + h + "/"); } catch {} } return new Response("ok"); } };
