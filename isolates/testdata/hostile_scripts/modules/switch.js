// a switch of 50,000 cases
// outcome: ok, cpu
// many: 50000 case $i: break; 

export default { fetch(r, env, ctx) { switch (r.url.length) { __MANY__ } return new Response("ok"); } };
