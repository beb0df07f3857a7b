// ten thousand classes, each extending the last
// outcome: exception, cpu
// load
// many: 10000 last = class extends last { x$i = $i; };

class C {}; let last = C; __MANY__
export default { fetch() { new last(); return new Response("ok"); } };
