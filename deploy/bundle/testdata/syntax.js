export default {
	fetch() { return new Response("ü" oops); },
};
