// Response.redirect to a URL of 16 MB
// outcome: cpu

export default { fetch() { return Response.redirect("http://x.test/" + "a".repeat(1 << 24)); } };
