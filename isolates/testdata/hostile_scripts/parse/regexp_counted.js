// counted repeats of counted repeats
// outcome: ok

export default { fetch() { new RegExp("((((a{1,1000}){1,1000}){1,1000}){1,1000}){1,1000}").test("a".repeat(1000)); return new Response("ok"); } };
