// a thenable with two answers
// outcome: exception

export default { fetch() { return { then(done) { done(1); done(new Response("second")); } }; } };
